// Command mig moves Kubernetes namespaces, with the data in their volumes,
// from one cluster to another.
package main

func main() {}
