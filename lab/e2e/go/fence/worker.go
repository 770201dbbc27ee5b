package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	leaseName = "operator"
	logName   = "log"
)

// worker appends entries, one after the other. It looks at the context between units only, as a controller does that
// is in the middle of a reconciliation.
type worker struct {
	settings
	client  kubernetes.Interface
	written atomic.Int64
}

func newWorker(config *rest.Config, s settings) (*worker, error) {
	client, err := kubernetes.NewForConfig(config)
	return &worker{settings: s, client: client}, err
}

// work does units until the context ends.
func (w *worker) work(ctx context.Context) {
	for ctx.Err() == nil {
		w.unit(ctx)
	}
	say(event{Event: "idle", Pod: w.pod})
}

// unit does one unit of work, whatever becomes of the context meanwhile.
func (w *worker) unit(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for done := 0; w.settings.unit == 0 || done < w.settings.unit; done++ {
		w.append(ctx)
		time.Sleep(w.pause)
	}
}

func (w *worker) append(ctx context.Context) {
	entry := fmt.Sprintf("%s/%d", w.pod, w.written.Add(1))
	body := fmt.Sprintf(`{"data":{"entry":%q}}`, entry)
	e := event{Event: "write", Pod: w.pod, Entry: entry, Sent: time.Now().UnixNano()}
	stored, err := w.client.CoreV1().ConfigMaps(w.namespace).Patch(
		ctx, logName, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	e.At = time.Now().UnixNano()
	if err == nil {
		e.Status, e.Revision = 200, revision(stored)
	} else {
		e.Message = err.Error()
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			e.Status = int(status.Status().Code)
		}
	}
	say(e)
}

func revision(object metav1.Object) uint64 {
	number, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// observe prints every revision of the log and of the lease as the API server stored them.
func observe(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	logs, err := client.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	leases, err := client.CoordinationV1().Leases(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	say(event{Event: "observing"})
	for {
		select {
		case <-ctx.Done():
			return nil
		case change, open := <-logs.ResultChan():
			if !open {
				return errors.New("the watch of the log ended")
			}
			if object, ok := change.Object.(*corev1.ConfigMap); ok && object.Name == logName && object.Data["entry"] != "" {
				say(event{Event: "stored", Entry: object.Data["entry"], Revision: revision(object)})
			}
		case change, open := <-leases.ResultChan():
			if !open {
				return errors.New("the watch of the lease ended")
			}
			sayLease(change)
		}
	}
}
