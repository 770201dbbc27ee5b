package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	"k8s.io/client-go/applyconfigurations"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/coordination"
	_ "k8s.io/kubernetes/pkg/apis/coordination/install"
)

// write is one write of a Lease: what is stored, what is sent, by which field manager, and the API server's clock.
type write struct {
	Verb    string          `json:"verb"`    // create, update, apply or upgrade
	Live    *lease          `json:"live"`    // what is stored; null for create
	New     *lease          `json:"new"`     // the object sent, or what a patch makes of the stored one
	Applied json.RawMessage `json:"applied"` // what is sent, for apply
	Manager string          `json:"manager"`
	Seconds int64           `json:"seconds"` // since 1970, on the clock of the API server
}

var (
	version  = schema.GroupVersion{Group: "coordination.k8s.io", Version: "v1"}
	internal = schema.GroupVersion{Group: "coordination.k8s.io", Version: runtime.APIVersionInternal}
	manager  = newManager()
)

func newManager() *managedfields.FieldManager {
	made, err := managedfields.NewDefaultFieldManager(
		applyconfigurations.NewTypeConverter(clientscheme.Scheme),
		runtime.UnsafeObjectConvertor(legacyscheme.Scheme), legacyscheme.Scheme, legacyscheme.Scheme,
		version.WithKind("Lease"), internal, "", nil)
	must(err)
	return made
}

// stored returns the object as it would be stored.
//
// The field manager stamps with the machine's clock and compares its stamps with those in the list. Whole seconds are
// added to the entry times so that both clocks read the same, and taken off afterwards. A write during which the
// machine's second changes is made again.
func (w *write) stored() (*lease, error) {
	for {
		second := time.Now().Unix()
		ahead := second - w.Seconds
		stored, err := w.storedAhead(ahead)
		if err != nil {
			return nil, err
		}
		if time.Now().Unix() == second {
			return encode(stored, -ahead)
		}
	}
}

func (w *write) storedAhead(seconds int64) (*coordinationv1.Lease, error) {
	if w.Verb == "create" {
		sent, err := w.New.decode(seconds)
		if err != nil {
			return nil, err
		}
		return versioned(manager.UpdateNoErrors(&coordination.Lease{}, unversioned(sent), w.Manager))
	}
	live, err := w.Live.decode(seconds)
	if err != nil {
		return nil, err
	}
	made, err := w.change(live, seconds)
	if err != nil {
		return nil, err
	}
	made, err = fieldmanager.IgnoreManagedFieldsTimestampsTransformer(context.Background(), made, unversioned(live))
	if err != nil {
		return nil, err
	}
	return versioned(made)
}

func (w *write) change(live *coordinationv1.Lease, seconds int64) (runtime.Object, error) {
	switch w.Verb {
	case "update":
		sent, err := w.New.decode(seconds)
		if err != nil {
			return nil, err
		}
		return manager.UpdateNoErrors(unversioned(live), unversioned(sent), w.Manager), nil
	case "upgrade": // kubectl moves its fields from client-side to server-side apply
		sent := live.DeepCopy()
		if err := csaupgrade.UpgradeManagedFields(sent, sets.New("kubectl-client-side-apply"), "kubectl"); err != nil {
			return nil, err
		}
		return manager.UpdateNoErrors(unversioned(live), unversioned(sent), w.Manager), nil
	case "apply":
		var patch map[string]any
		if err := utiljson.Unmarshal(w.Applied, &patch); err != nil {
			return nil, err
		}
		return manager.Apply(unversioned(live), &unstructured.Unstructured{Object: patch}, w.Manager, true)
	}
	return nil, fmt.Errorf("unknown verb %q", w.Verb)
}

func unversioned(l *coordinationv1.Lease) runtime.Object {
	out, err := legacyscheme.Scheme.ConvertToVersion(l.DeepCopy(), internal)
	must(err)
	return out
}

// versioned converts to v1 and does to times what storage does.
func versioned(o runtime.Object) (*coordinationv1.Lease, error) {
	converted, err := legacyscheme.Scheme.ConvertToVersion(o, version)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(converted)
	if err != nil {
		return nil, err
	}
	var out coordinationv1.Lease
	return &out, json.Unmarshal(raw, &out)
}
