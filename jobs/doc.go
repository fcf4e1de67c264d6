// Package jobs is what happens apart from a request: imports, and rounds, which River
// hands to one worker process each. It is glue between ml and imaging on one side and
// the stores on the other: it loads labels and pixels, has them trained and queried,
// and writes what came out. Every write of a round carries the attempt that its worker
// holds, so that a worker that was given up for dead cannot disturb the one that took
// over.
package jobs
