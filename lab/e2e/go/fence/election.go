package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// leaseWrites reports every answered write of the lease, and holds requests back for good once the election is cut.
type leaseWrites struct {
	next http.RoundTripper
	settings
}

func (t leaseWrites) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.Contains(request.URL.Path, "/leases") {
		return t.next.RoundTrip(request)
	}
	select {
	case <-t.cut:
		<-request.Context().Done()
		return nil, request.Context().Err()
	default:
	}
	e := event{Event: "lease", Pod: t.pod, Sent: time.Now().UnixNano()}
	response, err := t.next.RoundTrip(request)
	if err == nil && request.Method != http.MethodGet {
		e.Status = response.StatusCode
		e.Revision, err = revisionIn(response)
		say(e)
	}
	return response, err
}

// revisionIn reads the resourceVersion in an answer, and leaves the answer as it was.
func revisionIn(response *http.Response) (uint64, error) {
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	var lease coordinationv1.Lease
	if json.Unmarshal(body, &lease) != nil {
		return 0, err
	}
	return revision(&lease), err
}

func (s settings) lock(config *rest.Config) (resourcelock.Interface, error) {
	config = rest.CopyConfig(config)
	config.Timeout = s.deadline / 2
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return leaseWrites{next, s} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: leaseName, Namespace: s.namespace},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: s.pod + "_" + "4b1c"},
	}, nil
}

// electWithClientGo runs once: after a loss or a release this process does not stand for election again.
func (s settings) electWithClientGo(ctx context.Context, config *rest.Config, w *worker) error {
	lock, err := s.lock(config)
	if err != nil {
		return err
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		Name:            leaseName,
		LeaseDuration:   s.duration,
		RenewDeadline:   s.deadline,
		RetryPeriod:     s.retry,
		ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				say(event{Event: "started", Pod: s.pod})
				w.work(ctx)
			},
			OnStoppedLeading: func() { say(event{Event: "stopped", Pod: s.pod}) },
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}

// electWithControllerRuntime runs a manager with one controller, whose reconciliation is one unit of work. The manager
// does not wait for it when it shuts down, and so releases the lease before the work has ended.
func (s settings) electWithControllerRuntime(ctx context.Context, config *rest.Config, w *worker) error {
	ctrl.SetLogger(logr.Discard())
	lock, err := s.lock(config)
	if err != nil {
		return err
	}
	noWait := time.Duration(0)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		LeaderElection:                      true,
		LeaderElectionID:                    leaseName,
		LeaderElectionNamespace:             s.namespace,
		LeaderElectionReleaseOnCancel:       true,
		LeaderElectionResourceLockInterface: lock,
		LeaseDuration:                       &s.duration,
		RenewDeadline:                       &s.deadline,
		RetryPeriod:                         &s.retry,
		GracefulShutdownTimeout:             &noWait,
		HealthProbeBindAddress:              "0",
		Metrics:                             metricsserver.Options{BindAddress: "0"},
		Cache:                               cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
	})
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Named("log").Complete(reconcile.Func(
		func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			if request.Name == logName {
				w.unit(ctx)
			}
			return reconcile.Result{RequeueAfter: time.Millisecond}, nil
		}))
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-manager.Elected():
			say(event{Event: "started", Pod: s.pod})
		case <-ctx.Done():
		}
	}()
	err = manager.Start(ctx)
	say(event{Event: "stopped", Pod: s.pod})
	return err
}

func sayLease(change watch.Event) {
	lease, ok := change.Object.(*coordinationv1.Lease)
	if !ok || lease.Name != leaseName {
		return
	}
	e := event{Event: "held", Revision: revision(lease)}
	if lease.Spec.HolderIdentity != nil && change.Type != watch.Deleted {
		e.Holder = *lease.Spec.HolderIdentity
	}
	say(e)
}
