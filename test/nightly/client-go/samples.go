package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	eventsv1client "k8s.io/client-go/kubernetes/typed/events/v1"
)

const controller = "test-controller"

func (t *trial) events() eventsv1client.EventInterface {
	return t.typed.EventsV1().Events(t.namespace)
}

func (t *trial) coreEvents() corev1client.EventInterface {
	return t.typed.CoreV1().Events(t.namespace)
}

// sample is a valid event with every field a recorder fills in.
func (t *trial) sample(name string, changes ...func(*eventsv1.Event)) *eventsv1.Event {
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: t.namespace,
			Labels:    map[string]string{"suite": t.namespace},
		},
		EventTime:           metav1.NewMicroTime(time.Now().Truncate(time.Microsecond)),
		ReportingController: controller,
		ReportingInstance:   controller + "-0",
		Action:              "Testing",
		Reason:              "Tested",
		Regarding:           t.reference("web-0"),
		Note:                "this is " + name,
		Type:                corev1.EventTypeNormal,
	}
	for _, change := range changes {
		change(event)
	}
	return event
}

// coreSample is an event as recorders of core/v1 write it: without eventTime.
func (t *trial) coreSample(name string) *corev1.Event {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: t.namespace,
			Labels:    map[string]string{"suite": t.namespace},
		},
		InvolvedObject: t.reference("web-0"),
		Reason:         "Tested",
		Message:        "this is " + name,
		Source:         corev1.EventSource{Component: controller, Host: "node-1"},
		FirstTimestamp: now,
		LastTimestamp:  now,
		Count:          1,
		Type:           corev1.EventTypeNormal,
	}
}

func (t *trial) reference(pod string) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: t.namespace, Name: pod, UID: types.UID("uid-of-" + pod),
	}
}

func (t *trial) pod(name string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: t.namespace, UID: types.UID("uid-of-" + name)},
	}
}

func (t *trial) create(name string, changes ...func(*eventsv1.Event)) *eventsv1.Event {
	return must(t.events().Create(t, t.sample(name, changes...), metav1.CreateOptions{}))
}

func (t *trial) createMany(names ...string) {
	for _, name := range names {
		t.create(name)
	}
}

func labelled(name, value string) func(*eventsv1.Event) {
	return func(event *eventsv1.Event) { event.Labels[name] = value }
}

func seriesOf(count int32) *eventsv1.EventSeries {
	return &eventsv1.EventSeries{
		Count:            count,
		LastObservedTime: metav1.NewMicroTime(time.Now().Truncate(time.Microsecond)),
	}
}

func namesOf(items []eventsv1.Event) []string {
	names := []string{}
	for _, item := range items {
		names = append(names, item.Name)
	}
	return names
}

// sameEvent compares two events as values: a time read from JSON and one read from protobuf may
// differ in their zone alone, and the kind is filled in by some clients and not by others.
func sameEvent(what string, got, want *eventsv1.Event) {
	equal(what, plain(got), plain(want))
}

func plain(event *eventsv1.Event) string {
	copied := event.DeepCopy()
	copied.TypeMeta = metav1.TypeMeta{}
	return shown(copied)
}
