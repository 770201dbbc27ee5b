package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"os"
)

// reviewCase is one review and its known answer. Every send carries a fresh uid in place of the one in the file.
type reviewCase struct {
	File    string `json:"file"`
	UID     string `json:"uid"`
	Allowed bool   `json:"allowed"`
	Code    int    `json:"code"`

	body []byte
	at   int // where the uid stands in body
}

func readCases(path string) []reviewCase {
	text, err := os.ReadFile(path)
	check(err)
	var cases []reviewCase
	check(json.Unmarshal(text, &cases))
	if len(cases) == 0 {
		fail("no cases in " + path)
	}
	for i := range cases {
		c := &cases[i]
		c.body, err = os.ReadFile(c.File)
		check(err)
		if len(c.UID) != 36 {
			fail("uid of " + c.File + " has not 36 characters")
		}
		// Only the first occurrence is request.uid; the object's own uid is another string.
		at := bytes.Index(c.body, []byte(c.UID))
		if at < 0 {
			fail("uid not found in " + c.File)
		}
		c.at = at
	}
	return cases
}

// fresh writes a new uid into body, which is a copy of the case's body, and returns it.
func (c *reviewCase) fresh(body []byte, uid *[36]byte) {
	var raw [16]byte
	binary.LittleEndian.PutUint64(raw[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(raw[8:], rand.Uint64())
	hex.Encode(uid[0:8], raw[0:4])
	uid[8] = '-'
	hex.Encode(uid[9:13], raw[4:6])
	uid[13] = '-'
	hex.Encode(uid[14:18], raw[6:8])
	uid[18] = '-'
	hex.Encode(uid[19:23], raw[8:10])
	uid[23] = '-'
	hex.Encode(uid[24:36], raw[10:16])
	copy(body[c.at:], uid[:])
}

// outcome names what an answer was worth.
type outcome int

const (
	right outcome = iota
	wrongVerdict
	wrongUID
	unreadable
)

type answer struct {
	Response *struct {
		UID     string `json:"uid"`
		Allowed bool   `json:"allowed"`
		Status  struct {
			Code int `json:"code"`
		} `json:"status"`
	} `json:"response"`
}

// evaluate compares an HTTP 200 with what was asked. Code 0 in a case means that any code will do.
func (c *reviewCase) evaluate(body []byte, uid *[36]byte) outcome {
	var got answer
	if json.Unmarshal(body, &got) != nil || got.Response == nil {
		return unreadable
	}
	switch {
	case got.Response.UID != string(uid[:]):
		return wrongUID
	case got.Response.Allowed != c.Allowed:
		return wrongVerdict
	case !c.Allowed && c.Code != 0 && got.Response.Status.Code != c.Code:
		return wrongVerdict
	}
	return right
}
