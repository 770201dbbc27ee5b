// Command fieldmanager makes of a write of a Lease what kube-apiserver's field manager makes of it.
//
// Each line on standard input is one write, each line on standard output its outcome. The clock of the API server that
// takes the write is part of the line, so the same lines give the same outcomes on any day.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

const longestLine = 64 << 20

func main() {
	// The field manager logs lists that it cannot read, and an attacker sends many.
	klog.SetLogger(logr.Discard())
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), longestLine)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for lines.Scan() {
		answer, err := json.Marshal(outcomeOf(lines.Bytes()))
		must(err)
		_, err = out.Write(append(answer, '\n'))
		must(err)
		must(out.Flush())
	}
	must(lines.Err())
}

// outcome is the object that would be stored, or why the API server refuses the write.
type outcome struct {
	Lease *lease `json:"lease,omitempty"`
	Error string `json:"error,omitempty"`
}

func outcomeOf(line []byte) outcome {
	var w write
	if err := json.Unmarshal(line, &w); err != nil {
		return outcome{Error: err.Error()}
	}
	stored, err := w.stored()
	if err != nil {
		return outcome{Error: err.Error()}
	}
	return outcome{Lease: stored}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
