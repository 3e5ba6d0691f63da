// The franz-go client program; see tests/bench/clients/__init__.py.
//
// Each poll accepts the records of the previous one. It reads each value.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Bytes at the start of each value of the paced producer: nanoseconds since the epoch.
const timestampLength = 19

// Until each of several consumers has a record.
const joinTimeout = time.Minute

// The fraction of the records that several consumers read before measuring.
const unmeasured = 0.2

type options struct {
	what, bootstrap, group, topic  string
	records, maxRecords, consumers int
	warmUp, seconds, timeout       float64
}

func main() {
	opts := parseOptions()
	work := map[string]func(options) (any, error){
		"throughput": throughput,
		"latency":    latency,
	}[opts.what]
	if work == nil {
		fail(fmt.Errorf("unknown workload %q", opts.what))
	}
	result, err := work(opts)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fail(err)
	}
}

func parseOptions() options {
	var o options
	flag.StringVar(&o.what, "what", "throughput", "throughput or latency")
	flag.StringVar(&o.bootstrap, "bootstrap", "", "address of the only broker")
	flag.StringVar(&o.group, "group", "", "its share.auto.offset.reset is earliest")
	flag.StringVar(&o.topic, "topic", "", "")
	flag.IntVar(&o.records, "records", 0, "total of all consumers")
	flag.IntVar(&o.maxRecords, "max-records", 500, "max.poll.records")
	flag.IntVar(&o.consumers, "consumers", 1, "number in this process")
	flag.Float64Var(&o.warmUp, "warm-up", 3, "time not measured, from the first record")
	flag.Float64Var(&o.seconds, "seconds", 8, "duration of latency")
	flag.Float64Var(&o.timeout, "timeout", 120, "report what was read until then")
	flag.Parse()
	return o
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func newClient(o options) (*kgo.Client, error) {
	return kgo.NewClient(
		kgo.SeedBrokers(o.bootstrap),
		kgo.ShareGroup(o.group),
		kgo.ConsumeTopics(o.topic),
		kgo.ShareMaxRecords(int32(o.maxRecords)),
	)
}

// tally counts the records of all consumers of this process. It measures from the first
// record or, with several consumers, from restart.
type tally struct {
	count, size          atomic.Int64
	start                sync.Once
	first, begun         time.Time
	cpu                  float64
	skipped, skippedSize int64
}

// restart measures from now on, without the records read so far; see Meter in common.py.
func (t *tally) restart() {
	t.skipped, t.skippedSize = t.count.Load(), t.size.Load()
	t.begun, t.cpu = time.Now(), cpuSeconds()
}

// add counts records and returns the total; the first record starts the measurement.
func (t *tally) add(fetches kgo.Fetches) int64 {
	if fetches.NumRecords() > 0 {
		t.start.Do(func() {
			t.first, t.cpu = time.Now(), cpuSeconds()
			t.begun = t.first
		})
	}
	fetches.EachError(func(topic string, partition int32, err error) {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintf(os.Stderr, "%s-%d: %v\n", topic, partition, err)
		}
	})
	count, size := 0, 0
	for records := fetches.RecordIter(); !records.Done(); {
		size += len(records.Next().Value)
		count++
	}
	t.size.Add(int64(size))
	return t.count.Add(int64(count))
}

func (t *tally) report(base int64, started time.Time) map[string]any {
	now, cpu := time.Now(), cpuSeconds()
	report := map[string]any{
		"records": t.count.Load() - t.skipped, "skipped": t.skipped,
		"bytes":   t.size.Load() - t.skippedSize,
		"seconds": 0.0, "cpu": 0.0, "first": nil,
		"base": base, "peak": memory("VmHWM"),
	}
	if !t.first.IsZero() {
		report["seconds"] = now.Sub(t.begun).Seconds()
		report["cpu"] = cpu - t.cpu
		report["first"] = t.first.Sub(started).Seconds()
	}
	return report
}

func throughput(o options) (any, error) {
	base, started := memory("VmRSS"), time.Now()
	var clients []*kgo.Client
	defer func() { closeAll(clients) }()
	for range o.consumers {
		client, err := newClient(o)
		if err != nil {
			return nil, err
		}
		clients = append(clients, client)
	}
	var total tally
	ctx, done := context.WithTimeout(context.Background(), seconds(o.timeout))
	defer done()
	var working sync.WaitGroup
	join := joining(len(clients), &total)
	var restarted sync.Once
	limit := int64(float64(o.records) * unmeasured)
	var joinError atomic.Value
	for _, client := range clients {
		working.Go(func() {
			if err := join(ctx, client); err != nil {
				joinError.Store(err)
				done()
			}
			for ctx.Err() == nil {
				count := total.add(client.PollFetches(ctx))
				if count >= int64(o.records) {
					done()
				} else if len(clients) > 1 && count >= limit {
					restarted.Do(total.restart)
				}
			}
		})
	}
	working.Wait()
	if err, failed := joinError.Load().(error); failed {
		return nil, err
	}
	report := total.report(base, started)
	return report, acceptLast(clients) // not measured, like closing
}

// joining returns a function that polls until the client has records, and waits until
// all clients have. A single client does not wait.
func joining(count int, total *tally) func(context.Context, *kgo.Client) error {
	var joined atomic.Int64
	everyone := make(chan struct{})
	return func(ctx context.Context, client *kgo.Client) error {
		if count == 1 {
			return nil
		}
		limited, done := context.WithTimeout(ctx, joinTimeout)
		defer done()
		for read := 0; read == 0 && limited.Err() == nil; {
			fetches := client.PollFetches(limited)
			read = fetches.NumRecords()
			total.add(fetches)
			if read > 0 && joined.Add(1) == int64(count) {
				close(everyone)
			}
		}
		select {
		case <-everyone:
			return nil
		case <-limited.Done():
			return fmt.Errorf("%d of %d consumers received records in %v", joined.Load(), count, joinTimeout)
		}
	}
}

// acceptLast accepts the records of the last polls, which leaving would release.
func acceptLast(clients []*kgo.Client) error {
	ctx, done := context.WithTimeout(context.Background(), 10*time.Second)
	defer done()
	for _, client := range clients {
		client.MarkAcks(kgo.AckAccept)
		if err := client.FlushAcks(ctx); err != nil {
			return err
		}
	}
	return nil
}

// closeAll closes concurrently: in sequence, a hundred clients took half a minute.
func closeAll(clients []*kgo.Client) {
	var closing sync.WaitGroup
	for _, client := range clients {
		closing.Go(client.Close)
	}
	closing.Wait()
}

func latency(o options) (any, error) {
	client, err := newClient(o)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, done := context.WithTimeout(context.Background(), seconds(o.timeout))
	defer done()
	for client.PollFetches(ctx).NumRecords() == 0 && ctx.Err() == nil {
	}
	fmt.Println(`{"joined": true}`)
	warm := time.Now().Add(seconds(o.warmUp))
	end := warm.Add(seconds(o.seconds))
	var ages []float64
	for ctx.Err() == nil && time.Now().Before(end) {
		fetches := client.PollFetches(ctx)
		for records := fetches.RecordIter(); !records.Done(); {
			created, err := strconv.ParseInt(string(records.Next().Value[:timestampLength]), 10, 64)
			if err != nil {
				return nil, err
			}
			if now := time.Now(); now.After(warm) && now.Before(end) {
				ages = append(ages, float64(now.UnixNano()-created)/1e9)
			}
		}
	}
	return percentiles(ages, o.seconds), nil
}

func percentiles(ages []float64, measured float64) map[string]float64 {
	result := map[string]float64{"rate": float64(len(ages)) / measured}
	if len(ages) == 0 {
		return result
	}
	slices.Sort(ages)
	ranks := map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1}
	for name, rank := range ranks {
		result[name] = ages[int(math.Round(float64(len(ages)-1)*rank))]
	}
	return result
}

func seconds(s float64) time.Duration {
	return time.Duration(s * float64(time.Second))
}

func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// memory returns Linux's figure in bytes, on other systems the peak.
func memory(name string) int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		var usage syscall.Rusage
		if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
			return 0
		}
		if runtime.GOOS == "darwin" {
			return usage.Maxrss
		}
		return usage.Maxrss * 1024
	}
	for line := range bytes.Lines(status) {
		if fields := strings.Fields(string(line)); fields[0] == name+":" {
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64)
			return kilobytes * 1024
		}
	}
	return 0
}
