package main

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// apiServerTransport has the settings with which kube-apiserver calls webhooks: HTTP/1.1 only, 25 idle connections per
// host kept for 90 s, no TLS session cache (client-go transport/cache.go, apiserver pkg/util/webhook/client.go).
func apiServerTransport(set settings, t *tally) *http.Transport {
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		TLSClientConfig:     set.tls,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
		DisableKeepAlives:   set.newEachTime,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			t.connections.Add(1)
			return dialer.DialContext(ctx, network, address)
		},
	}
}

func runOpen(set settings, t *tally) {
	client := &http.Client{Transport: apiServerTransport(set, t), Timeout: set.timeout}
	gap := time.Duration(float64(time.Second) / set.rate * float64(set.burst))
	started := time.Now()
	var group sync.WaitGroup
	for sent := 0; set.requests == 0 || sent < set.requests; sent += set.burst {
		due := started.Add(gap * time.Duration(sent/set.burst))
		if set.duration > 0 && due.Sub(started) >= set.duration {
			break
		}
		time.Sleep(time.Until(due))
		for range set.burst {
			group.Go(func() { sendOnce(client, set, t, due) })
		}
	}
	group.Wait()
}

func sendOnce(client *http.Client, set settings, t *tally, due time.Time) {
	which := &set.cases[rand.IntN(len(set.cases))]
	body := bytes.Clone(which.body)
	var uid [36]byte
	which.fresh(body, &uid)
	request, err := http.NewRequest(http.MethodPost, set.target.String(), bytes.NewReader(body))
	check(err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, */*")
	request.Header.Set("User-Agent", "kube-apiserver-admission")
	connected := false
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
	response, err := client.Do(request.WithContext(httptrace.WithClientTrace(request.Context(), trace)))
	if err != nil {
		t.failed(connected, err)
		return
	}
	answer, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		t.failed(true, err)
		return
	}
	took, what := time.Since(due), right
	if response.StatusCode == http.StatusOK && !set.skipUID {
		what = which.evaluate(answer, &uid)
	}
	t.answered(response.StatusCode, what, took)
}
