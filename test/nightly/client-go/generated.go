package main

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
)

const generatedEvents = 100

// generatedEncodings sends events with random fields in one encoding and reads them in the other.
func generatedEncodings(t *trial) {
	other := must(newClients(t.target, otherThan(t.config.ContentType)))
	filler := randfill.NewWithSeed(time.Now().UnixNano()).NilChance(0.3).NumElements(0, 4).Funcs(
		func(at *metav1.MicroTime, fill randfill.Continue) {
			*at = metav1.NewMicroTime(time.UnixMicro(fill.Int63n(4e15)).UTC())
		},
		func(at *metav1.Time, fill randfill.Continue) { *at = metav1.Unix(fill.Int63n(4e9), 0) },
	)
	for index := range generatedEvents {
		event := t.sample(fmt.Sprintf("generated-%d", index))
		filler.Fill(&event.Annotations)
		filler.Fill(&event.Note)
		filler.Fill(&event.Related)
		filler.Fill(&event.Regarding.FieldPath)
		filler.Fill(&event.Regarding.UID)
		filler.Fill(&event.EventTime)
		event.Annotations = validKeys(event.Annotations)
		event.Note = cut(event.Note, 1024)
		if event.EventTime.IsZero() {
			event.EventTime = metav1.NewMicroTime(time.UnixMicro(1))
		}
		created := must(t.events().Create(t, event, metav1.CreateOptions{}))
		want := event.DeepCopy()
		want.UID, want.ResourceVersion = created.UID, created.ResourceVersion
		want.CreationTimestamp = created.CreationTimestamp
		sameEvent("answered in "+t.config.ContentType, created, want)
		read := must(other.typed.EventsV1().Events(t.namespace).Get(t, event.Name, metav1.GetOptions{}))
		sameEvent("read in "+other.config.ContentType, read, want)
	}
	all := must(other.typed.EventsV1().Events(t.namespace).List(t, metav1.ListOptions{}))
	equal("all", len(all.Items), generatedEvents)
}

func otherThan(encoding string) string {
	if encoding == jsonEncoding {
		return protobufEncoding
	}
	return jsonEncoding
}

// validKeys replaces the keys of random maps by valid ones.
func validKeys(values map[string]string) map[string]string {
	if values == nil {
		return nil
	}
	valid := map[string]string{}
	for _, value := range values {
		valid[fmt.Sprintf("key-%d", len(valid))] = value
	}
	return valid
}

// cut keeps as many whole characters as fit into the given number of bytes.
func cut(text string, bytes int) string {
	for index := range text {
		if index > bytes-4 {
			return text[:index]
		}
	}
	return text
}
