// Package queue runs jobs on a fixed number of workers.
package queue

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"
)

// ErrClosed is returned when a job comes after the end.
var ErrClosed = errors.New("queue: closed")

// Job is one piece of work.
type Job struct {
	Name    string
	Run     func(ctx context.Context) error
	Retries int
}

// Queue holds jobs until a worker takes them.
type Queue struct {
	jobs    chan Job
	wait    sync.WaitGroup
	mutex   sync.Mutex
	closed  bool
	failed  map[string]error
	timeout time.Duration
}

// New starts the workers.
func New(workers, size int, timeout time.Duration) *Queue {
	q := &Queue{
		jobs:    make(chan Job, size),
		failed:  make(map[string]error),
		timeout: timeout,
	}
	for i := 0; i < workers; i++ {
		q.wait.Add(1)
		go q.work(i)
	}
	return q
}

// Add puts a job at the end.
func (q *Queue) Add(job Job) error {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.closed {
		return ErrClosed
	}
	select {
	case q.jobs <- job:
		return nil
	default:
		return fmt.Errorf("queue: full, %q was not taken", job.Name)
	}
}

func (q *Queue) work(number int) {
	defer q.wait.Done()
	for job := range q.jobs {
		if err := q.try(job); err != nil {
			log.Printf("worker %d: %s: %v", number, job.Name, err)
			q.mutex.Lock()
			q.failed[job.Name] = err
			q.mutex.Unlock()
		}
	}
}

func (q *Queue) try(job Job) error {
	var err error
	for attempt := 0; attempt <= job.Retries; attempt++ {
		ctx, cancel := context.WithTimeout(context.Background(), q.timeout)
		err = job.Run(ctx)
		cancel()
		if err == nil {
			return nil
		}
		time.Sleep(time.Duration(attempt) * 10 * time.Millisecond)
	}
	return fmt.Errorf("after %d tries: %w", job.Retries+1, err)
}

// Close waits for what is left.
func (q *Queue) Close() map[string]error {
	q.mutex.Lock()
	q.closed = true
	q.mutex.Unlock()
	close(q.jobs)
	q.wait.Wait()
	return q.failed
}
