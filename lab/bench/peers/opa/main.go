// OPA's own command line, built from its module so that its version and hashes are pinned in go.sum.
package main

import (
	"os"

	"github.com/open-policy-agent/opa/cmd"
)

func main() {
	if err := cmd.Command(nil, "OPA").Execute(); err != nil {
		os.Exit(1)
	}
}
