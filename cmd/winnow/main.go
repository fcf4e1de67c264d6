// Command winnow labels images when the pool also holds classes nobody asked
// for. Everything it does is in package app.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"winnow/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks to stop; the second is not caught, and ends the process.
	context.AfterFunc(ctx, stop)
	os.Exit(app.Main(ctx, os.Args[1:], os.Getenv, os.Stdout))
}
