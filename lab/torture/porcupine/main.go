// Command porcupine reads operations on registers, one JSON object per line, and says whether they are linearizable.
//
// Prints `ok`, `illegal` or `unknown` for each key; the exit status is 1 unless all are ok.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// operation is one request. Every written value is unique, so that a value stands for a resourceVersion.
type operation struct {
	Key    string `json:"key"`
	Client int    `json:"client"`
	Call   int64  `json:"call"`
	Return int64  `json:"return"`
	// Op is "read", "write", or "replace": a write that is to succeed only over Expected.
	Op       string `json:"op"`
	Value    string `json:"value"`
	Expected string `json:"expected"`
	// Result is "ok", "conflict" of a replacement, or "unknown": no answer came, and it may be stored, now or later.
	Result string `json:"result"`
}

const limit = time.Minute

func step(state, input, _ any) []any {
	value, o := state.(string), input.(operation)
	switch {
	case o.Op == "read" && o.Value == value:
		return []any{value}
	case o.Op == "write" && o.Result == "ok":
		return []any{o.Value}
	case o.Op == "write":
		return []any{value, o.Value}
	case o.Op == "replace" && o.Result == "conflict" && o.Expected != value:
		return []any{value}
	case o.Op == "replace" && o.Result == "ok" && o.Expected == value:
		return []any{o.Value}
	case o.Op == "replace" && o.Result == "unknown" && o.Expected == value:
		return []any{value, o.Value}
	case o.Op == "replace" && o.Result == "unknown":
		return []any{value}
	}
	return nil
}

func main() {
	histories := map[string][]porcupine.Operation{}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var o operation
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		if o.Result == "unknown" {
			o.Return = math.MaxInt64
		}
		histories[o.Key] = append(histories[o.Key], porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Call, Return: o.Return})
	}
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{""} },
		Step: step,
	}
	keys := make([]string, 0, len(histories))
	for key := range histories {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	status := 0
	for _, key := range keys {
		said := "ok"
		switch porcupine.CheckOperationsTimeout(model.ToModel(), histories[key], limit) {
		case porcupine.Illegal:
			said, status = "illegal", 1
		case porcupine.Unknown:
			said, status = "unknown", 1
		}
		fmt.Printf("%s %d %s\n", key, len(histories[key]), said)
	}
	os.Exit(status)
}
