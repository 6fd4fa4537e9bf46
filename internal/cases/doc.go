// Package cases holds the scenarios in which users of tools like this one were
// hurt, one test each, with inputs of our own: the state of two clusters, the
// commands, and what a user would want to come of it. mig is run as a process,
// and judged by exit codes, by what -o json says and by what the clusters hold.
//
// Cases need different beds. Those that need no cluster, or only two API
// servers on which Velero looks healthy, have the build tag e2e. Those that
// need a Velero that works run on the lab, take long, and have the build tag
// cases beside it. $MIG_NEEDS names the beds to be used, all by default.
//
// Scenarios that lie elsewhere, as directories with the state of both clusters
// in YAML and the commands in a text, are run from $MIG_CASES.
package cases
