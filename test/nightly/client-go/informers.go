package main

import (
	"slices"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// informerCases follow a namespace with the caches that controllers have.
var informerCases = []testCase{
	{"informer: with WatchList, the cache is what the server has", withWatchList(true, informerFollows)},
	{"informer: without WatchList, the cache is what the server has", withWatchList(false, informerFollows)},
	{"informer: with WatchList, of core/v1", withWatchList(true, coreInformerFollows)},
	{"informer: without WatchList, of core/v1", withWatchList(false, coreInformerFollows)},
	{"informer: with WatchList, handlers see every change in order", withWatchList(true, informerHandlers)},
	{"informer: without WatchList, handlers see every change in order", withWatchList(false, informerHandlers)},
	{"informer: with WatchList, dynamic", withWatchList(true, dynamicInformerFollows)},
	{"informer: without WatchList, dynamic", withWatchList(false, dynamicInformerFollows)},
	{"informer: with WatchList, of metadata only", withWatchList(true, metadataInformerFollows)},
	{"informer: without WatchList, of metadata only", withWatchList(false, metadataInformerFollows)},
}

// informing is locked by the case that sets the feature gate, which is global to the process.
var informing sync.Mutex

func withWatchList(isOn bool, run func(*trial)) func(*trial) {
	return func(t *trial) {
		informing.Lock()
		defer informing.Unlock()
		gates := features.FeatureGates().(interface {
			Set(features.Feature, bool) error
		})
		mustNot(gates.Set(features.WatchListClient, isOn))
		run(t)
		check((t.seen.watchLists.Load() > 0) == isOn, "%d lists by watch", t.seen.watchLists.Load())
	}
}

func (t *trial) factory() informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(t.typed, 0, informers.WithNamespace(t.namespace))
}

func (t *trial) synced(informer cache.SharedIndexInformer) {
	check(cache.WaitForCacheSync(t.Done(), informer.HasSynced), "never synced")
}

// followed writes before and after the informer has synced and waits for its store to agree.
func (t *trial) followed(informer cache.SharedIndexInformer, start func()) {
	t.createMany("a", "b", "c")
	start()
	t.synced(informer)
	equal("synced", storedNames(informer), []string{"a", "b", "c"})
	t.create("d")
	t.label("a", "new")
	mustNot(t.events().Delete(t, "b", metav1.DeleteOptions{}))
	t.eventually("the cache follows", func() bool {
		return slices.Equal(storedNames(informer), []string{"a", "c", "d"})
	})
}

func storedNames(informer cache.SharedIndexInformer) []string {
	var names []string
	for _, key := range informer.GetStore().ListKeys() {
		_, name, _ := cache.SplitMetaNamespaceKey(key)
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func informerFollows(t *trial) {
	factory := t.factory()
	informer := factory.Events().V1().Events()
	t.followed(informer.Informer(), func() { factory.Start(t.Done()) })
	for _, event := range must(informer.Lister().Events(t.namespace).List(labels.Everything())) {
		sameEvent(event.Name, event, must(t.events().Get(t, event.Name, metav1.GetOptions{})))
	}
}

func coreInformerFollows(t *trial) {
	factory := t.factory()
	informer := factory.Core().V1().Events()
	t.followed(informer.Informer(), func() { factory.Start(t.Done()) })
	equal("message", must(informer.Lister().Events(t.namespace).Get("d")).Message, "this is d")
}

func informerHandlers(t *trial) {
	factory := t.factory()
	informer := factory.Events().V1().Events().Informer()
	changes := make(chan string, 100)
	must(informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { changes <- "add " + object.(*eventsv1.Event).Name },
		UpdateFunc: func(_, object any) {
			changes <- "update " + object.(*eventsv1.Event).Name + object.(*eventsv1.Event).Labels["mark"]
		},
		DeleteFunc: func(object any) { changes <- "delete " + object.(*eventsv1.Event).Name },
	}))
	factory.Start(t.Done())
	t.synced(informer)
	t.create("x")
	t.label("x", "1")
	t.label("x", "2")
	mustNot(t.events().Delete(t, "x", metav1.DeleteOptions{}))
	t.create("x")
	for _, want := range []string{"add x", "update x1", "update x2", "delete x", "add x"} {
		select {
		case got := <-changes:
			equal("change", got, want)
		case <-time.After(10 * time.Second):
			fail("waited for %s", want)
		}
	}
}

func dynamicInformerFollows(t *trial) {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(t.dynamic, 0, t.namespace, nil)
	informer := factory.ForResource(eventsResource).Informer()
	t.followed(informer, func() { factory.Start(t.Done()) })
}

func metadataInformerFollows(t *trial) {
	factory := metadatainformer.NewFilteredSharedInformerFactory(t.metadata, 0, t.namespace, nil)
	informer := factory.ForResource(eventsResource).Informer()
	t.followed(informer, func() { factory.Start(t.Done()) })
}
