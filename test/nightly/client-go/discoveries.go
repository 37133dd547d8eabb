package main

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/restmapper"
)

var discoveryCases = []testCase{
	{"discovery: each group's preferred version is one of its own", preferredVersions},
	{"discovery: events are namespaced, with every verb", eventsDiscovered},
	{"discovery: aggregated, both groups come in two requests", aggregatedDiscovery},
	{"discovery: the plain documents say the same", plainDiscovery},
	{"discovery: the mapper of kinds finds both", mapsKinds},
	{"discovery: the server's version is told", serverVersion},
	{"openapi: v3 has a document for each group", openapiV3},
	{"openapi: v2 is read", openapiV2},
	{"health: livez and readyz answer ok", healthy},
}

func (t *trial) discovery() discovery.DiscoveryInterface { return t.typed.Discovery() }

func preferredVersions(t *trial) {
	groups := must(t.discovery().ServerGroups())
	check(len(groups.Groups) >= 2, "%d groups", len(groups.Groups))
	for _, group := range groups.Groups {
		check(slices.Contains(group.Versions, group.PreferredVersion), "%s prefers %v", group.Name, group.PreferredVersion)
	}
}

func eventsDiscovered(t *trial) {
	for _, version := range []string{"v1", "events.k8s.io/v1"} {
		list := must(t.discovery().ServerResourcesForGroupVersion(version))
		equal("version", list.GroupVersion, version)
		index := slices.IndexFunc(list.APIResources, func(each metav1.APIResource) bool { return each.Name == "events" })
		check(index >= 0, "no events in %s", version)
		events := list.APIResources[index]
		check(events.Namespaced, "not namespaced")
		equal("kind", events.Kind, "Event")
		equal("short", events.ShortNames, []string{"ev"})
		equal("verbs", []string(events.Verbs),
			[]string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
	}
}

func aggregatedDiscovery(t *trial) {
	before := t.seen.lists.Load()
	groups, resources := must2(t.discovery().ServerGroupsAndResources())
	equal("requests", t.seen.lists.Load()-before, int64(2))
	check(len(groups) >= 2 && len(resources) >= 2, "%d groups, %d lists", len(groups), len(resources))
}

func plainDiscovery(t *trial) {
	_, aggregated := must2(t.discovery().ServerGroupsAndResources())
	_, plain := must2(t.discovery().WithLegacy().ServerGroupsAndResources())
	equal("lists", versionsOf(plain), versionsOf(aggregated))
}

func versionsOf(lists []*metav1.APIResourceList) []string {
	var found []string
	for _, list := range lists {
		for _, resource := range list.APIResources {
			found = append(found, list.GroupVersion+"/"+resource.Name)
		}
	}
	slices.Sort(found)
	return found
}

func mapsKinds(t *trial) {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(t.discovery()))
	mapping := must(mapper.RESTMapping(schema.GroupKind{Group: "events.k8s.io", Kind: "Event"}))
	equal("resource", mapping.Resource, eventsResource)
	core := must(mapper.RESTMapping(schema.GroupKind{Kind: "Event"}, "v1"))
	equal("resource", core.Resource, coreResource)
	equal("ev", must(mapper.ResourceFor(schema.GroupVersionResource{Resource: "events"})), coreResource)
}

func serverVersion(t *trial) {
	version := must(t.discovery().ServerVersion())
	equal("major", version.Major, "1")
	check(version.GitVersion != "" && version.Minor != "", "got %v", version)
}

func openapiV3(t *trial) {
	root := openapi3.NewRoot(t.discovery().OpenAPIV3())
	for _, version := range []schema.GroupVersion{{Version: "v1"}, {Group: "events.k8s.io", Version: "v1"}} {
		spec := must(root.GVSpec(version))
		check(len(spec.Paths.Paths) > 0, "no paths in %s", version)
		check(len(spec.Components.Schemas) > 0, "no schemas in %s", version)
	}
}

func openapiV2(t *trial) {
	document := must(t.discovery().OpenAPISchema())
	check(len(document.GetDefinitions().GetAdditionalProperties()) > 5, "no definitions")
}

func healthy(t *trial) {
	for _, path := range []string{"/livez", "/readyz"} {
		body := must(t.discovery().RESTClient().Get().AbsPath(path).DoRaw(t))
		equal(path, string(body), "ok")
	}
}

func must2[A, B any](first A, second B, err error) (A, B) {
	mustNot(err)
	return first, second
}
