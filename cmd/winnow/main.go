// Command winnow labels images when the pool also holds classes nobody asked
// for. Everything it does is in package app.
package main

import (
	"context"
	"os"

	"winnow/app"
)

func main() {
	os.Exit(app.Main(context.Background(), os.Args[1:], os.Getenv, os.Stdout))
}
