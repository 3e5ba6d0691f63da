// A process that consumes with franz-go, for comparison; see tests/chaos/clients.
//
// Each poll accepts the records of the previous one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Time for accepting the last records at the end.
const closeTime = 10 * time.Second

// Linux's number of CLOCK_MONOTONIC, which the journals of all processes use.
const clockMonotonic = 1

type options struct {
	Servers  string  `json:"servers"`
	Topic    string  `json:"topic"`
	Group    string  `json:"group"`
	Journal  string  `json:"journal"`
	ClientID string  `json:"client_id"`
	Seconds  float64 `json:"seconds"`
}

func main() {
	var o options
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		fail(err)
	}
	if err := consume(o); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func consume(o options) error {
	journal, err := os.OpenFile(o.Journal, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(o.Servers, ",")...),
		kgo.ShareGroup(o.Group),
		kgo.ConsumeTopics(o.Topic),
		kgo.ClientID(o.ClientID),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Fprintf(journal, "started %d 0 - 0 0 0\n", now())
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		fetches.EachError(func(topic string, partition int32, err error) {
			if !errors.Is(err, context.Canceled) {
				fmt.Fprintf(os.Stderr, "%s-%d: %v\n", topic, partition, err)
			}
		})
		for records := fetches.RecordIter(); !records.Done(); {
			record := records.Next()
			time.Sleep(time.Duration(o.Seconds * float64(time.Second)))
			number, err := strconv.Atoi(string(record.Value))
			if err != nil {
				return err
			}
			fmt.Fprintf(journal, "handled %d %d %s %d %d 0\n",
				now(), number, record.Topic, record.Partition, record.Offset)
		}
	}
	last, done := context.WithTimeout(context.Background(), closeTime)
	defer done()
	client.MarkAcks(kgo.AckAccept)
	return client.FlushAcks(last)
}

// now returns nanoseconds of the machine's monotonic clock.
func now() int64 {
	var at syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
	return at.Nano()
}
