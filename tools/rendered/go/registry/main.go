// A registry in memory, on a loopback port that it prints: what a chart is pushed to and pulled from.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(listener.Addr())
	log.Fatal(http.Serve(listener, registry.New(registry.Logger(log.New(io.Discard, "", 0)))))
}
