// Package e2e holds the end-to-end tests: mig as a process, on two real
// clusters with real Velero and real data (scripts/lab). They have the build
// tag e2e and know of mig what a user knows: commands, exit codes, what is said,
// the Events, and what the clusters and volumes hold afterwards.
package e2e
