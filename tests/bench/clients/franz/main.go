// franz-go's share group, measured as tests/bench/clients/common.py says.
//
// It polls, which accepts what the poll before gave, and looks at each value.
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

// The first bytes of a value of the paced producer: nanoseconds since the epoch.
const stamp = 19

type options struct {
	what, bootstrap, group, topic  string
	records, maxRecords, consumers int
	warmUp, seconds, patience      float64
}

func main() {
	asked := read()
	work := map[string]func(options) (any, error){
		"throughput": throughput,
		"latency":    latency,
	}[asked.what]
	if work == nil {
		fail(fmt.Errorf("this client does not do %q", asked.what))
	}
	result, err := work(asked)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fail(err)
	}
}

func read() options {
	var o options
	flag.StringVar(&o.what, "what", "throughput", "throughput or latency")
	flag.StringVar(&o.bootstrap, "bootstrap", "", "the one broker's address")
	flag.StringVar(&o.group, "group", "", "share.auto.offset.reset is earliest already")
	flag.StringVar(&o.topic, "topic", "", "")
	flag.IntVar(&o.records, "records", 0, "end after so many, in all consumers")
	flag.IntVar(&o.maxRecords, "max-records", 500, "of one fetch")
	flag.IntVar(&o.consumers, "consumers", 1, "in this one process")
	flag.Float64Var(&o.warmUp, "warm-up", 3, "not counted, after the first")
	flag.Float64Var(&o.seconds, "seconds", 8, "of latency")
	flag.Float64Var(&o.patience, "patience", 120, "give what there is after this")
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

// tally is what all consumers of this process got together.
type tally struct {
	count, size atomic.Int64
	begun       sync.Once
	first       time.Time
	cpu         float64
}

// took begins to measure at the first record, and gives how many there are by now.
func (t *tally) took(fetches kgo.Fetches) int64 {
	if fetches.NumRecords() > 0 {
		t.begun.Do(func() { t.first, t.cpu = time.Now(), cpuSeconds() })
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
		"records": t.count.Load(), "bytes": t.size.Load(),
		"seconds": 0.0, "cpu": 0.0, "first": nil,
		"base": base, "peak": memory("VmHWM"),
	}
	if !t.first.IsZero() {
		report["seconds"] = now.Sub(t.first).Seconds()
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
	var all tally
	ctx, done := context.WithTimeout(context.Background(), seconds(o.patience))
	defer done()
	var working sync.WaitGroup
	for _, client := range clients {
		working.Go(func() {
			for ctx.Err() == nil {
				if all.took(client.PollFetches(ctx)) >= int64(o.records) {
					done()
				}
			}
		})
	}
	working.Wait()
	report := all.report(base, started)
	return report, acceptLast(clients) // and closing, which is not counted either
}

// acceptLast accepts what the last polls gave: leaving the group would release it.
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

// closeAll closes side by side: one after the other, a hundred took half a minute.
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
	ctx, done := context.WithTimeout(context.Background(), seconds(o.patience))
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
			made, err := strconv.ParseInt(string(records.Next().Value[:stamp]), 10, 64)
			if err != nil {
				return nil, err
			}
			if now := time.Now(); now.After(warm) && now.Before(end) {
				ages = append(ages, float64(now.UnixNano()-made)/1e9)
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

// memory gives bytes by Linux's own figures, else the most there ever was.
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
