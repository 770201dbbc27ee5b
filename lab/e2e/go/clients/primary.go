package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// What CloudNativePG 1.30 sends for the lease that decides which pod is the PostgreSQL primary, in the same order and
// with the same fields. An instance manager (`primary`) takes the lease by a loop of its own, renews it by client-go's
// elector and releases it itself; its operator (`cluster`) creates the lease without a spec, and adopts one that exists.

const (
	clusterAPIVersion = "postgresql.cnpg.io/v1"
	clusterKind       = "Cluster"
)

// primary is one instance. Its identity is the bare name of its pod, which the next pod of that name has as well.
type primary struct {
	settings
	lock       *resourcelock.LeaseLock
	observed   resourcelock.LeaderElectionRecord
	observedAt time.Time
}

func (s settings) bePrimary(ctx context.Context, config *rest.Config, namespace string) error {
	clientset, report, err := s.reporting(config, namespace)
	if err != nil {
		return err
	}
	p := primary{settings: s, lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: s.lease, Namespace: namespace},
		Client:     clientset.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: s.identity},
	}}
	for ctx.Err() == nil {
		if !p.acquire(ctx) {
			break
		}
		report("started", s.identity)
		if err := p.renew(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
		record, _, err := p.lock.Get(ctx)
		if err == nil && record.HolderIdentity != s.identity {
			report("stopped", record.HolderIdentity)
			return fmt.Errorf("the lease is held by %q", record.HolderIdentity)
		}
	}
	report("stopped", "")
	if !s.release {
		return nil // an upgrade in place: PostgreSQL goes on, and the next process finds its own name in the lease
	}
	return p.giveBack()
}

// acquire polls at a fixed period until this instance holds the lease; false if it is to end.
func (p *primary) acquire(ctx context.Context) bool {
	for {
		if p.tryOnce(ctx) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(p.retry):
		}
	}
}

func (p *primary) tryOnce(ctx context.Context) bool {
	record, _, err := p.lock.Get(ctx)
	if err != nil {
		p.observedAt = time.Time{}
		return false
	}
	switch record.HolderIdentity {
	case p.identity:
		return true
	case "":
		return p.claim(ctx, record)
	}
	isSame := record.HolderIdentity == p.observed.HolderIdentity && record.RenewTime.Equal(&p.observed.RenewTime)
	if p.observedAt.IsZero() || !isSame {
		p.observed, p.observedAt = *record, time.Now()
		return false
	}
	return time.Since(p.observedAt) >= p.duration && p.claim(ctx, record)
}

func (p *primary) claim(ctx context.Context, before *resourcelock.LeaderElectionRecord) bool {
	now := metav1.NewTime(time.Now())
	return p.lock.Update(ctx, resourcelock.LeaderElectionRecord{
		HolderIdentity:       p.identity,
		LeaseDurationSeconds: int(p.duration / time.Second),
		RenewTime:            now,
		AcquireTime:          now,
		LeaderTransitions:    before.LeaderTransitions + 1,
	}) == nil
}

func (p *primary) renew(ctx context.Context) error {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          p.lock,
		Name:          p.lease,
		LeaseDuration: p.duration,
		RenewDeadline: p.deadline,
		RetryPeriod:   p.retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	return nil
}

// giveBack runs when everything else has ended, so it has a context of its own.
func (p *primary) giveBack() error {
	ctx, cancel := context.WithTimeout(context.Background(), p.deadline)
	defer cancel()
	record, _, err := p.lock.Get(ctx)
	if err != nil || record.HolderIdentity != p.identity {
		return err
	}
	now := metav1.NewTime(time.Now())
	return p.lock.Update(ctx, resourcelock.LeaderElectionRecord{
		LeaseDurationSeconds: 1,
		RenewTime:            now,
		AcquireTime:          now,
		LeaderTransitions:    record.LeaderTransitions,
	})
}

// reconcile sees to the lease of a cluster until it is stopped: on each round it creates it, or looks at what is there.
func (s settings) reconcile(ctx context.Context, config *rest.Config, namespace string) error {
	clientset, report, err := s.reporting(config, namespace)
	if err != nil {
		return err
	}
	isController := true
	owned := metav1.ObjectMeta{
		Name:      s.lease,
		Namespace: namespace,
		Labels:    map[string]string{"cnpg.io/cluster": s.lease},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: clusterAPIVersion, Kind: clusterKind, Name: s.lease, UID: types.UID(s.identity), Controller: &isController,
		}},
	}
	leases := clientset.CoordinationV1().Leases(namespace)
	for ctx.Err() == nil {
		_, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: owned}, metav1.CreateOptions{})
		switch {
		case err == nil:
			report("created", "")
		case !apierrors.IsAlreadyExists(err):
			report("failed", err.Error())
		default:
			stored, err := leases.Get(ctx, s.lease, metav1.GetOptions{})
			if err != nil {
				report("failed", err.Error())
				break
			}
			owner := metav1.GetControllerOf(stored)
			if owner != nil && owner.UID == types.UID(s.identity) {
				report("found", "")
				break
			}
			if owner != nil && (owner.Kind != clusterKind || owner.APIVersion != clusterAPIVersion || owner.Name != s.lease) {
				report("failed", "controlled by "+owner.Kind+" "+owner.Name)
				break
			}
			stored.Labels = owned.Labels
			stored.OwnerReferences = owned.OwnerReferences
			if _, err := leases.Update(ctx, stored, metav1.UpdateOptions{}); err != nil {
				report("failed", err.Error())
				break
			}
			report("adopted", "")
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.retry):
		}
	}
	return nil
}

// reporting returns a client whose writes are reported, and the function that reports anything else.
func (s settings) reporting(config *rest.Config, namespace string) (*kubernetes.Clientset, func(what, leader string), error) {
	name := event{Namespace: namespace, Identity: s.identity}
	config = rest.CopyConfig(config)
	config.Timeout = s.deadline / 2
	config.QPS, config.Burst = float32(s.qps), s.burst
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return timedWrites{next, name} })
	clientset, err := kubernetes.NewForConfig(config)
	return clientset, func(what, leader string) {
		e := name
		e.Event, e.Leader = what, leader
		say(e)
	}, err
}
