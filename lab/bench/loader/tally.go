package main

import (
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// tally collects what happened to every review.
type tally struct {
	mu          sync.Mutex
	latencies   []float64
	errors      map[string]int
	statuses    map[int]int
	sent        int
	right       int
	verdicts    int
	uids        int
	unreadable  int
	broken      int
	connections atomic.Int64
	firstError  float64
	lastError   float64
	started     time.Time
}

func newTally() *tally {
	return &tally{errors: map[string]int{}, statuses: map[int]int{}, started: time.Now()}
}

// failed counts a review without an answer; connected tells whether its connection, TLS included, stood.
func (t *tally) failed(connected bool, err error) {
	text := err.Error()
	if len(text) > 100 {
		text = text[len(text)-100:]
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	t.errors[text]++
	if connected {
		t.broken++
	}
	t.lastError = time.Since(t.started).Seconds()
	if t.firstError == 0 {
		t.firstError = t.lastError
	}
}

func (t *tally) answered(status int, what outcome, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	t.statuses[status]++
	if status != 200 {
		return
	}
	t.latencies = append(t.latencies, took.Seconds()*1e3)
	switch what {
	case right:
		t.right++
	case wrongVerdict:
		t.verdicts++
	case wrongUID:
		t.uids++
	case unreadable:
		t.unreadable++
	}
}

// report is what the Python side reads; milliseconds and seconds as the names say.
func (t *tally) report(took time.Duration) map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	sort.Float64s(t.latencies)
	// The smallest latency that more than this share of all do not exceed, as in lab/e2e/quantile.py.
	at := func(q float64) float64 {
		return t.latencies[min(len(t.latencies)-1, int(q*float64(len(t.latencies))))]
	}
	statuses := map[string]int{}
	for status, count := range t.statuses {
		statuses[fmt.Sprint(status)] = count
	}
	lost := 0
	for _, count := range t.errors {
		lost += count
	}
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	report := map[string]any{
		"sent": t.sent, "right": t.right, "wrong_verdicts": t.verdicts, "wrong_uids": t.uids, "unreadable": t.unreadable,
		"statuses": statuses, "lost": lost, "broken": t.broken, "errors": t.errors, "connections": t.connections.Load(),
		"seconds": took.Seconds(), "first_error_seconds": t.firstError, "last_error_seconds": t.lastError,
		"client_cpu_seconds": float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9,
	}
	if len(t.latencies) > 0 {
		for name, q := range map[string]float64{"p50_ms": .5, "p90_ms": .9, "p99_ms": .99, "p999_ms": .999, "max_ms": 1} {
			report[name] = at(q)
		}
	}
	return report
}
