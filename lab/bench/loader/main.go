// Loader sends admission reviews with known answers over TLS and counts what comes back. It prints one JSON object.
//
//	loader closed   a fixed number of kept-alive connections, each sends its next review when the last is answered
//	loader open     reviews leave on a timetable, whatever the server does, through net/http with the transport
//	                settings of kube-apiserver; latency counts from the scheduled moment (no coordinated omission)
package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"time"
)

// settings are the command line; each field is described at its flag.
type settings struct {
	target      *url.URL
	tls         *tls.Config
	cases       []reviewCase
	duration    time.Duration
	requests    int
	connections int
	rate        float64
	burst       int
	timeout     time.Duration
	newEachTime bool
	skipUID     bool
}

func main() {
	if len(os.Args) < 2 {
		fail("usage: loader closed|open [flags]")
	}
	mode := os.Args[1]
	flags := flag.NewFlagSet(mode, flag.ExitOnError)
	target := flags.String("url", "", "where to send the reviews")
	ca := flags.String("ca", "", "file with the trusted root")
	cases := flags.String("cases", "", "file with a JSON list of {file, uid, allowed, code}")
	var set settings
	flags.DurationVar(&set.duration, "duration", 0, "stop after this time; 0 = after -requests")
	flags.IntVar(&set.requests, "requests", 0, "stop after this many; 0 = after -duration")
	flags.IntVar(&set.connections, "connections", 8, "closed: connections")
	flags.Float64Var(&set.rate, "rate", 500, "open: reviews per second")
	flags.IntVar(&set.burst, "burst", 1, "open: reviews that leave together")
	flags.DurationVar(&set.timeout, "timeout", 10*time.Second, "give a review up after this time")
	flags.BoolVar(&set.newEachTime, "new-connections", false, "a new connection for each review")
	flags.BoolVar(&set.skipUID, "constant-answer", false, "the server answers with a constant: only count status 200")
	_ = flags.Parse(os.Args[2:])

	parsed, err := url.Parse(*target)
	check(err)
	set.target = parsed
	root, err := os.ReadFile(*ca)
	check(err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(root) {
		fail("no certificate in " + *ca)
	}
	set.tls = &tls.Config{RootCAs: pool, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
	set.cases = readCases(*cases)

	tally := newTally()
	started := time.Now()
	switch mode {
	case "closed":
		runClosed(set, tally)
	case "open":
		runOpen(set, tally)
	default:
		fail("unknown mode " + mode)
	}
	check(json.NewEncoder(os.Stdout).Encode(tally.report(time.Since(started))))
}

func check(err error) {
	if err != nil {
		fail(err.Error())
	}
}

func fail(text string) {
	fmt.Fprintln(os.Stderr, "loader: "+text)
	os.Exit(2)
}
