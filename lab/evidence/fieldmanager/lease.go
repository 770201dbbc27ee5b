package main

import (
	"encoding/json"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lease is a Lease on the wire: the object without managedFields, and their entries beside it.
//
// Entries keep fieldsV1 as text, because it may nest more deeply than the reader of a line can follow.
// Null entries are managedFields that a request leaves out, which is not the same as an empty list.
type lease struct {
	Object  json.RawMessage `json:"object"`
	Entries []entry         `json:"entries"`
}

// entry is one entry of managedFields; a null time is absent, and year 1 is metav1's zero time.
type entry struct {
	Manager     string  `json:"manager"`
	Operation   string  `json:"operation"`
	APIVersion  string  `json:"apiVersion"`
	Subresource string  `json:"subresource"`
	Time        *string `json:"time"`
	Fields      string  `json:"fields"`
}

// decode returns the object with every entry time moved by whole seconds.
func (l *lease) decode(seconds int64) (*coordinationv1.Lease, error) {
	var out coordinationv1.Lease
	if err := json.Unmarshal(l.Object, &out); err != nil {
		return nil, err
	}
	if l.Entries != nil {
		out.ManagedFields = []metav1.ManagedFieldsEntry{}
	}
	for _, e := range l.Entries {
		decoded, err := e.decode(seconds)
		if err != nil {
			return nil, err
		}
		out.ManagedFields = append(out.ManagedFields, decoded)
	}
	return &out, nil
}

func (e entry) decode(seconds int64) (metav1.ManagedFieldsEntry, error) {
	out := metav1.ManagedFieldsEntry{
		Manager:     e.Manager,
		Operation:   metav1.ManagedFieldsOperationType(e.Operation),
		APIVersion:  e.APIVersion,
		Subresource: e.Subresource,
	}
	if e.Fields != "" {
		out.FieldsType = "FieldsV1"
		out.FieldsV1 = &metav1.FieldsV1{Raw: []byte(e.Fields)}
	}
	if e.Time == nil {
		return out, nil
	}
	at, err := time.Parse(time.RFC3339, *e.Time)
	if err != nil {
		return out, err
	}
	if !at.IsZero() {
		at = at.Add(time.Duration(seconds) * time.Second)
	}
	out.Time = &metav1.Time{Time: at}
	return out, nil
}

// encode is the inverse of decode.
func encode(l *coordinationv1.Lease, seconds int64) (*lease, error) {
	out := &lease{Entries: []entry{}}
	for _, e := range l.ManagedFields {
		out.Entries = append(out.Entries, encodeEntry(e, seconds))
	}
	bare := l.DeepCopy()
	bare.ManagedFields = nil
	raw, err := json.Marshal(bare)
	out.Object = raw
	return out, err
}

func encodeEntry(e metav1.ManagedFieldsEntry, seconds int64) entry {
	out := entry{
		Manager:     e.Manager,
		Operation:   string(e.Operation),
		APIVersion:  e.APIVersion,
		Subresource: e.Subresource,
	}
	if e.FieldsV1 != nil {
		out.Fields = string(e.FieldsV1.Raw)
	}
	if e.Time != nil {
		at := e.Time.UTC()
		if !at.IsZero() {
			at = at.Add(time.Duration(seconds) * time.Second)
		}
		text := at.Format(time.RFC3339)
		out.Time = &text
	}
	return out
}
