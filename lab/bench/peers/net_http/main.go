// The least a Go webhook can be: net/http, encoding/json and one comparison. No metrics, no guards, no other rule.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
)

type review struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Request    *request  `json:"request,omitempty"`
	Response   *response `json:"response,omitempty"`
}

type request struct {
	UID    string `json:"uid"`
	Object struct {
		Spec struct {
			LeaseDurationSeconds *int32 `json:"leaseDurationSeconds"`
		} `json:"spec"`
	} `json:"object"`
}

type response struct {
	UID     string  `json:"uid"`
	Allowed bool    `json:"allowed"`
	Status  *status `json:"status,omitempty"`
}

type status struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func validate(w http.ResponseWriter, r *http.Request) {
	var in review
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	answer := response{UID: in.Request.UID, Allowed: true}
	if seconds := in.Request.Object.Spec.LeaseDurationSeconds; seconds != nil && *seconds <= 0 {
		answer.Allowed = false
		answer.Status = &status{Code: 422, Message: "spec.leaseDurationSeconds: must be greater than 0"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review{APIVersion: in.APIVersion, Kind: in.Kind, Response: &answer})
}

func main() {
	address := flag.String("address", "127.0.0.1:9443", "TLS address")
	certificates := flag.String("tls-dir", "certs", "directory with tls.crt and tls.key")
	flag.Parse()
	http.HandleFunc("POST /validate", validate)
	err := http.ListenAndServeTLS(*address, filepath.Join(*certificates, "tls.crt"), filepath.Join(*certificates, "tls.key"), nil)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
