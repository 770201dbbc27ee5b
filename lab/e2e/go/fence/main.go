// Command fence runs controllers that append to one shared object, elected through a Lease, and prints what becomes of
// every write, one JSON object per line.
//
//	fence work    -kubeconfig FILE -namespace N -pod NAME -library client-go|controller-runtime|none
//	fence observe -kubeconfig FILE -namespace N
//
// The shared object is the ConfigMap "log". An entry is a revision of it: every write is a merge patch that sets
// data.entry to "pod/number", without a resourceVersion, so nothing but admission can refuse it. The order of the
// entries is that of the resourceVersions.
//
// Signals: USR1 ends the election as a clean shutdown does (client-go and controller-runtime release the lease), while
// the unit of work that has begun goes on; USR2 cuts the election's requests, and the work goes on.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// event is one line of output. Times are nanoseconds since 1970. Status 0 is a write without an answer.
type event struct {
	Event    string `json:"event"`
	Pod      string `json:"pod,omitempty"`
	Entry    string `json:"entry,omitempty"`
	Holder   string `json:"holder,omitempty"`
	Sent     int64  `json:"sent,omitempty"`
	At       int64  `json:"at"`
	Status   int    `json:"status,omitempty"`
	Revision uint64 `json:"revision,omitempty"`
	Message  string `json:"message,omitempty"`
}

var stdout struct {
	sync.Mutex
	*json.Encoder
}

func say(e event) {
	if e.At == 0 {
		e.At = time.Now().UnixNano()
	}
	stdout.Lock()
	defer stdout.Unlock()
	if err := stdout.Encode(e); err != nil {
		os.Exit(1)
	}
}

type settings struct {
	namespace, pod, library   string
	duration, deadline, retry time.Duration
	pause                     time.Duration
	unit                      int
	cut                       chan struct{}
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("usage: fence work|observe -kubeconfig FILE -namespace N")
	}
	s := settings{cut: make(chan struct{})}
	flags := flag.NewFlagSet(arguments[0], flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "how to reach the API server")
	flags.StringVar(&s.namespace, "namespace", "default", "of the Lease \"operator\" and of the ConfigMap \"log\"")
	flags.StringVar(&s.pod, "pod", "op-a", "the pod that the token names")
	flags.StringVar(&s.library, "library", "client-go", "client-go, controller-runtime, or none: write without leading")
	flags.DurationVar(&s.duration, "duration", 3*time.Second, "LeaseDuration")
	flags.DurationVar(&s.deadline, "deadline", 2*time.Second, "RenewDeadline")
	flags.DurationVar(&s.retry, "retry", 500*time.Millisecond, "RetryPeriod")
	flags.DurationVar(&s.pause, "pause", 5*time.Millisecond, "between two writes")
	flags.IntVar(&s.unit, "unit", 100, "writes of one unit of work, which ends only with the last of them; 0: never ends")
	if err := flags.Parse(arguments[1:]); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch arguments[0] {
	case "observe":
		return observe(ctx, config, s.namespace)
	case "work":
		return s.work(ctx, config)
	}
	return fmt.Errorf("unknown command %q", arguments[0])
}

// work elects and works until SIGTERM.
func (s settings) work(ctx context.Context, config *rest.Config) error {
	election, release := context.WithCancel(ctx)
	defer release()
	asked := make(chan os.Signal, 2)
	signal.Notify(asked, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for received := range asked {
			if received == syscall.SIGUSR1 {
				say(event{Event: "releasing", Pod: s.pod})
				release()
			} else {
				close(s.cut)
			}
		}
	}()
	worker, err := newWorker(config, s)
	if err != nil {
		return err
	}
	switch s.library {
	case "client-go":
		err = s.electWithClientGo(election, config, worker)
	case "controller-runtime":
		err = s.electWithControllerRuntime(election, config, worker)
	case "none":
		go worker.unit(ctx)
	default:
		err = fmt.Errorf("unknown library %q", s.library)
	}
	if err != nil {
		say(event{Event: "ended", Pod: s.pod, Message: err.Error()})
	}
	// What has begun goes on although the lease is gone; the process itself ends by SIGTERM.
	<-ctx.Done()
	return nil
}

func main() {
	stdout.Encoder = json.NewEncoder(os.Stdout)
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
