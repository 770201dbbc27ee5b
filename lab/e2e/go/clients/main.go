// Command clients runs unmodified client-go electors and LeaseCandidates and prints what happens to them, one JSON object per line.
//
//	clients elector   -kubeconfig FILE -namespaces a,b -lease NAME -identity ID [-coordinated] [-release] [-label TEXT] [-qps 0.05 -burst 9]
//	clients candidate -kubeconfig FILE -namespaces a   -lease NAME -identity ID -binary 1.36.3 -emulation 1.36.0
//	clients primary   -kubeconfig FILE -namespaces a   -lease NAME -identity POD [-release]
//	clients cluster   -kubeconfig FILE -namespaces a   -lease NAME -identity UID
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// event is one line of output. Milliseconds and Status belong to writes; Status 0 is a write without an answer.
type event struct {
	Time         string  `json:"time"`
	Namespace    string  `json:"namespace"`
	Identity     string  `json:"identity"`
	Event        string  `json:"event"`
	Leader       string  `json:"leader,omitempty"`
	Method       string  `json:"method,omitempty"`
	Status       int     `json:"status,omitempty"`
	Milliseconds float64 `json:"milliseconds,omitempty"`
}

var stdout struct {
	sync.Mutex
	*json.Encoder
}

func say(e event) {
	e.Time = time.Now().UTC().Format(time.RFC3339Nano)
	stdout.Lock()
	defer stdout.Unlock()
	if err := stdout.Encode(e); err != nil {
		os.Exit(1)
	}
}

// timedWrites reports how long every write took as the client saw it.
type timedWrites struct {
	next http.RoundTripper
	name event
}

func (t timedWrites) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet {
		return t.next.RoundTrip(request)
	}
	begin := time.Now()
	response, err := t.next.RoundTrip(request)
	e := t.name
	e.Event, e.Method, e.Milliseconds = "write", request.Method, float64(time.Since(begin).Microseconds())/1000
	if err == nil {
		e.Status = response.StatusCode
	}
	say(e)
	return response, err
}

type settings struct {
	lease, identity, binary, emulation string
	label                              string
	duration, deadline, retry          time.Duration
	release, coordinated               bool
	qps                                float64
	burst                              int
}

func (s settings) elect(ctx context.Context, config *rest.Config, namespace string) error {
	clientset, report, err := s.reporting(config, namespace)
	if err != nil {
		return err
	}
	var labels map[string]string
	if s.label != "" {
		labels = map[string]string{"elector": s.label}
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: labeled(&resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: s.lease, Namespace: namespace},
			Client:     clientset.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: s.identity},
		}, labels),
		Name:            s.lease,
		LeaseDuration:   s.duration,
		RenewDeadline:   s.deadline,
		RetryPeriod:     s.retry,
		ReleaseOnCancel: s.release,
		Coordinated:     s.coordinated,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { report("started", s.identity) },
			OnStoppedLeading: func() { report("stopped", s.identity) },
			OnNewLeader:      func(leader string) { report("leader", leader) },
		},
	})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		elector.Run(ctx)
	}
	return nil
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("usage: clients elector|candidate|primary|cluster -kubeconfig FILE -namespaces a,b -lease NAME -identity ID")
	}
	var s settings
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	namespaces := flags.String("namespaces", "default", "one elector or candidate runs in each")
	flags.StringVar(&s.lease, "lease", "leader", "name of the Lease")
	flags.StringVar(&s.identity, "identity", "a", "holderIdentity, the name of the LeaseCandidate, or the uid of the Cluster")
	flags.StringVar(&s.binary, "binary", "1.36.3", "binaryVersion of a candidate")
	flags.StringVar(&s.emulation, "emulation", "1.36.0", "emulationVersion of a candidate")
	flags.DurationVar(&s.duration, "duration", 15*time.Second, "LeaseDuration")
	flags.DurationVar(&s.deadline, "deadline", 10*time.Second, "RenewDeadline")
	flags.DurationVar(&s.retry, "retry", 2*time.Second, "RetryPeriod")
	flags.Float64Var(&s.qps, "qps", 0, "requests a second that client-go lets pass; its default if 0")
	flags.IntVar(&s.burst, "burst", 0, "requests that it lets pass at once; its default if 0")
	flags.StringVar(&s.label, "label", "", "value of a label that the elector sets with each write")
	flags.BoolVar(&s.release, "release", false, "ReleaseOnCancel")
	flags.BoolVar(&s.coordinated, "coordinated", false, "let the API server choose among LeaseCandidates")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	work := map[string]func(context.Context, *rest.Config, string) error{
		"elector": s.elect, "candidate": s.stand, "primary": s.bePrimary, "cluster": s.reconcile,
	}[arguments[0]]
	if work == nil {
		return fmt.Errorf("unknown command %q", arguments[0])
	}
	places := strings.Split(*namespaces, ",")
	failures := make(chan error, len(places))
	for _, place := range places {
		go func() { failures <- work(ctx, config, place) }()
	}
	for range places {
		if err := <-failures; err != nil {
			return err
		}
	}
	return nil
}

func main() {
	stdout.Encoder = json.NewEncoder(os.Stdout)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
