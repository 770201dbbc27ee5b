package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// runClosed speaks HTTP by hand: net/http costs more than the servers under test and would hide them behind itself.
func runClosed(set settings, t *tally) {
	var taken atomic.Int64
	deadline := time.Now().Add(set.duration)
	more := func() bool {
		if set.requests > 0 && taken.Add(1) > int64(set.requests) {
			return false
		}
		return set.duration == 0 || time.Now().Before(deadline)
	}
	var group sync.WaitGroup
	for range set.connections {
		group.Go(func() {
			c := &closedConnection{set: set, tally: t}
			defer c.drop()
			for more() {
				c.send()
			}
		})
	}
	group.Wait()
}

type closedConnection struct {
	set    settings
	tally  *tally
	conn   net.Conn
	reader *bufio.Reader
	buffer []byte
	body   []byte
}

func (c *closedConnection) drop() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

func (c *closedConnection) send() {
	which := &c.set.cases[rand.IntN(len(c.set.cases))]
	started := time.Now()
	status, what, err := c.exchange(which)
	if err != nil {
		c.tally.failed(c.conn != nil, err)
		c.drop()
		time.Sleep(10 * time.Millisecond) // a server that is down shall not be hammered
		return
	}
	c.tally.answered(status, what, time.Since(started))
	if c.set.newEachTime {
		c.drop()
	}
}

func (c *closedConnection) exchange(which *reviewCase) (int, outcome, error) {
	if c.conn == nil {
		dialer := &net.Dialer{Timeout: 5 * time.Second}
		conn, err := tls.DialWithDialer(dialer, "tcp", c.set.target.Host, c.set.tls)
		if err != nil {
			return 0, right, err
		}
		c.tally.connections.Add(1)
		c.conn, c.reader = conn, bufio.NewReaderSize(conn, 16<<10)
	}
	_ = c.conn.SetDeadline(time.Now().Add(c.set.timeout))
	c.buffer = fmt.Appendf(c.buffer[:0], "POST %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: kube-apiserver-admission\r\nContent-Length: %d\r\n"+
		"Accept: application/json, */*\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n",
		c.set.target.RequestURI(), c.set.target.Host, len(which.body))
	start := len(c.buffer)
	c.buffer = append(c.buffer, which.body...)
	var uid [36]byte
	which.fresh(c.buffer[start:], &uid)
	if _, err := c.conn.Write(c.buffer); err != nil {
		return 0, right, err
	}
	status, closing, err := c.readAnswer()
	if err != nil {
		return 0, right, err
	}
	what := right
	if status == 200 && !c.set.skipUID {
		what = which.evaluate(c.body, &uid)
	}
	if closing {
		c.drop()
	}
	return status, what, nil
}

// readAnswer reads one response with a Content-Length, or chunked as net/http sends longer ones.
func (c *closedConnection) readAnswer() (status int, closing bool, err error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, false, err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return 0, false, fmt.Errorf("not HTTP: %q", line[:min(len(line), 40)])
	}
	status, err = strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, false, err
	}
	length, chunked := 0, false
	for {
		line, err = c.reader.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(value)); err != nil {
				return 0, false, err
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			chunked = true
		case bytes.EqualFold(name, []byte("connection")):
			closing = bytes.EqualFold(value, []byte("close"))
		}
	}
	if chunked {
		return 0, false, fmt.Errorf("chunked answer")
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err = io.ReadFull(c.reader, c.body)
	return status, closing, err
}
