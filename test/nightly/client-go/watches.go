package main

import (
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"
)

var watchCases = []testCase{
	{"watch: tells of what is added, modified and deleted", watchChanges},
	{"watch: starts from a version", watchFromVersion},
	{"watch: without a version begins with what is there", watchFromNow},
	{"watch: resumes where another ended", watchResumed},
	{"watch: an event that leaves the selector is deleted, and comes back as added", watchSelector},
	{"watch: many see the same order", watchOrder},
	{"watch: sendInitialEvents ends with the bookmark that says so", watchInitialEvents},
	{"watch: ends in time when asked to", watchTimeout},
	{"watch: a version that is no number is BadRequest", watchBadVersion},
	{"watch: all namespaces are watched at once", watchEverywhere},
	{"watch: a field selector on the name gives that event only", watchName},
	{"watch: RetryWatcher goes on after the server ended the watch", watchRetried},
	{"watch: UntilWithSync sees what comes", watchUntil},
}

// next is the next event of the watch, bookmarks included.
func (t *trial) next(from watch.Interface) watch.Event {
	select {
	case event, isOpen := <-from.ResultChan():
		check(isOpen, "the watch has ended")
		return event
	case <-time.After(10 * time.Second):
		fail("nothing came")
	case <-t.Done():
		fail("no time left")
	}
	return watch.Event{}
}

func (t *trial) expect(from watch.Interface, kind watch.EventType, name string) *eventsv1.Event {
	event := t.next(from)
	if event.Type == watch.Error {
		fail("got an error: %v", apierrors.FromObject(event.Object))
	}
	object, isEvent := event.Object.(*eventsv1.Event)
	check(isEvent, "got %s of %T", event.Type, event.Object)
	equal("change", []string{string(event.Type), object.Name}, []string{string(kind), name})
	return object
}

func (t *trial) version() string {
	return must(t.events().List(t, metav1.ListOptions{})).ResourceVersion
}

func (t *trial) label(name, label string) *eventsv1.Event {
	return must(t.patch(name, types.MergePatchType, `{"metadata":{"labels":{"mark":"`+label+`"}}}`))
}

func watchChanges(t *trial) {
	from := must(t.events().Watch(t, metav1.ListOptions{ResourceVersion: t.version()}))
	defer from.Stop()
	created := t.create("moving")
	sameEvent("added", t.expect(from, watch.Added, "moving"), created)
	changed := t.label("moving", "b")
	sameEvent("modified", t.expect(from, watch.Modified, "moving"), changed)
	mustNot(t.events().Delete(t, "moving", metav1.DeleteOptions{}))
	gone := t.expect(from, watch.Deleted, "moving")
	check(versionOf(gone) > versionOf(changed), "deleted at %s", gone.ResourceVersion)
}

func watchFromVersion(t *trial) {
	t.create("before")
	first := t.create("first")
	t.create("second")
	from := must(t.events().Watch(t, metav1.ListOptions{ResourceVersion: first.ResourceVersion}))
	defer from.Stop()
	t.expect(from, watch.Added, "second")
}

func watchFromNow(t *trial) {
	t.createMany("a", "b")
	from := must(t.events().Watch(t, metav1.ListOptions{}))
	defer from.Stop()
	t.expect(from, watch.Added, "a")
	t.expect(from, watch.Added, "b")
	t.create("c")
	t.expect(from, watch.Added, "c")
}

func watchResumed(t *trial) {
	first := must(t.events().Watch(t, metav1.ListOptions{ResourceVersion: t.version()}))
	t.create("one")
	seen := t.expect(first, watch.Added, "one")
	first.Stop()
	t.create("two")
	t.label("one", "later")
	second := must(t.events().Watch(t, metav1.ListOptions{ResourceVersion: seen.ResourceVersion}))
	defer second.Stop()
	t.expect(second, watch.Added, "two")
	t.expect(second, watch.Modified, "one")
}

func watchSelector(t *trial) {
	t.create("shy")
	from := must(t.events().Watch(t, metav1.ListOptions{ResourceVersion: t.version(), LabelSelector: "mark=in"}))
	defer from.Stop()
	t.label("shy", "in")
	t.expect(from, watch.Added, "shy")
	left := t.label("shy", "out")
	gone := t.expect(from, watch.Deleted, "shy")
	equal("version", gone.ResourceVersion, left.ResourceVersion)
	t.label("shy", "in")
	t.expect(from, watch.Added, "shy")
	mustNot(t.events().Delete(t, "shy", metav1.DeleteOptions{}))
	t.expect(from, watch.Deleted, "shy")
}

func watchOrder(t *trial) {
	const watchers, writers, each = 5, 4, 10
	version := t.version()
	var writing sync.WaitGroup
	for range writers {
		writing.Add(1)
		go func() {
			defer writing.Done()
			for range each {
				unnamed := t.sample("", func(event *eventsv1.Event) { event.GenerateName = "e-" })
				if _, err := t.events().Create(t, unnamed, metav1.CreateOptions{}); err != nil {
					return
				}
			}
		}()
	}
	orders := make([][]string, watchers)
	for index := range orders {
		from := must(t.events().Watch(t, metav1.ListOptions{ResourceVersion: version}))
		for range writers * each {
			orders[index] = append(orders[index], t.next(from).Object.(*eventsv1.Event).ResourceVersion)
		}
		from.Stop()
	}
	writing.Wait()
	for _, order := range orders[1:] {
		equal("order", order, orders[0])
	}
}

func watchInitialEvents(t *trial) {
	t.createMany("a", "b")
	from := must(t.events().Watch(t, metav1.ListOptions{
		SendInitialEvents:    ptr.To(true),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		AllowWatchBookmarks:  true,
	}))
	defer from.Stop()
	t.expect(from, watch.Added, "a")
	second := t.expect(from, watch.Added, "b")
	end := t.expect(from, watch.Bookmark, "")
	equal("mark", end.Annotations[metav1.InitialEventsAnnotationKey], "true")
	check(versionOf(end) >= versionOf(second), "bookmark at %s", end.ResourceVersion)
	t.create("c")
	t.expect(from, watch.Added, "c")
}

func watchTimeout(t *trial) {
	startedAt := time.Now()
	from := must(t.events().Watch(t, metav1.ListOptions{ResourceVersion: t.version(), TimeoutSeconds: ptr.To(int64(1))}))
	event, isOpen := <-from.ResultChan()
	check(!isOpen, "got %s", event.Type)
	check(time.Since(startedAt) > 900*time.Millisecond, "ended after %v", time.Since(startedAt))
}

func watchBadVersion(t *trial) {
	_, err := t.events().Watch(t, metav1.ListOptions{ResourceVersion: "yesterday"})
	check(apierrors.IsBadRequest(err), "got %v", err)
}

func watchEverywhere(t *trial) {
	bySuite := metav1.ListOptions{ResourceVersion: t.version(), LabelSelector: "suite=" + t.namespace}
	from := must(t.typed.EventsV1().Events("").Watch(t, bySuite))
	defer from.Stop()
	there := *t
	there.namespace = t.namespace + "-too"
	there.create("there", labelled("suite", t.namespace))
	t.create("here")
	t.expect(from, watch.Added, "there")
	t.expect(from, watch.Added, "here")
}

func watchName(t *trial) {
	from := must(t.events().Watch(t, metav1.SingleObject(metav1.ObjectMeta{Name: "me", ResourceVersion: t.version()})))
	defer from.Stop()
	t.create("not-me")
	t.create("me")
	t.expect(from, watch.Added, "me")
}

func watchRetried(t *trial) {
	lister := &cache.ListWatch{WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
		options.TimeoutSeconds = ptr.To(int64(1))
		return t.events().Watch(t, options)
	}}
	from := must(watchtools.NewRetryWatcherWithContext(t, t.create("start").ResourceVersion, lister))
	defer from.Stop()
	for _, name := range []string{"first", "second", "third"} {
		t.create(name)
		t.expect(from, watch.Added, name)
		time.Sleep(700 * time.Millisecond)
	}
}

func watchUntil(t *trial) {
	t.create("awaited")
	lister := &cache.ListWatch{
		ListFunc: func(options metav1.ListOptions) (runtime.Object, error) { return t.events().List(t, options) },
		WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
			return t.events().Watch(t, options)
		},
	}
	time.AfterFunc(100*time.Millisecond, func() {
		_, _ = t.patch("awaited", types.MergePatchType, `{"metadata":{"labels":{"mark":"done"}}}`)
	})
	last := must(watchtools.UntilWithSync(t, lister, &eventsv1.Event{}, nil, func(event watch.Event) (bool, error) {
		object, isEvent := event.Object.(*eventsv1.Event)
		return isEvent && object.Labels["mark"] == "done", nil
	}))
	equal("name", last.Object.(*eventsv1.Event).Name, "awaited")
}
