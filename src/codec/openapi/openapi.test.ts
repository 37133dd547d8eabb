import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { coreGroup, eventsGroup } from '../../api/event-groups.ts'
import { isObject, type Json, type JsonObject } from '../../lib/json.ts'
import { openApiV2, openApiV3 } from './openapi.ts'
import { eventsOpenApi, reviewsOpenApi, tidingsOpenApi } from './openapi-groups.ts'

const groups = [
  ...[eventsGroup('events.k8s.io'), coreGroup].map(eventsOpenApi),
  ...reviewsOpenApi,
  tidingsOpenApi,
]
const v2 = openApiV2(groups, 'v1.37.0')
const v3Documents = groups.map((group) => openApiV3(group, 'v1.37.0'))
const [events, core, authentication, authorization] = v3Documents.map((document) =>
  at(document, 'components', 'schemas'),
)
const KINDS = 'x-kubernetes-group-version-kind'
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'

function at(tree: Json | undefined, ...names: readonly string[]): JsonObject {
  let here = tree
  for (const name of names) here = isObject(here) ? here[name] : undefined
  assert.ok(isObject(here), names.join(' '))
  return here
}

/** Every object of a document, the document itself included. */
function* objectsOf(tree: Json | undefined): Generator<JsonObject> {
  if (Array.isArray(tree)) for (const entry of tree) yield* objectsOf(entry)
  else if (isObject(tree)) {
    yield tree
    for (const value of Object.values(tree)) yield* objectsOf(value)
  }
}

function operationsOf(document: JsonObject): JsonObject[] {
  return [...objectsOf(document)].filter(({ operationId }) => operationId !== undefined)
}

describe('OpenAPI documents', () => {
  test('every reference points to a schema of the same document', () => {
    for (const document of [v2, ...v3Documents]) {
      const refs = [...objectsOf(document)].flatMap(({ $ref }) =>
        typeof $ref === 'string' ? [$ref] : [],
      )
      assert.ok(refs.length > 10)
      for (const ref of refs) {
        const [, ...names] = ref.split('/')
        at(document, ...names)
      }
    }
  })

  test('schemas have the names of Kubernetes', () => {
    assert.deepEqual(Object.keys(events ?? {}), [
      'io.k8s.api.core.v1.EventSource',
      'io.k8s.api.core.v1.ObjectReference',
      'io.k8s.api.events.v1.Event',
      'io.k8s.api.events.v1.EventList',
      'io.k8s.api.events.v1.EventSeries',
      `${META}.APIResource`,
      `${META}.APIResourceList`,
      `${META}.DeleteOptions`,
      `${META}.FieldsV1`,
      `${META}.ListMeta`,
      `${META}.ManagedFieldsEntry`,
      `${META}.MicroTime`,
      `${META}.ObjectMeta`,
      `${META}.OwnerReference`,
      `${META}.Patch`,
      `${META}.Preconditions`,
      `${META}.ShardInfo`,
      `${META}.Status`,
      `${META}.StatusCause`,
      `${META}.StatusDetails`,
      `${META}.Time`,
      `${META}.Verbs`,
      `${META}.WatchEvent`,
    ])
    at(core, 'io.k8s.api.core.v1.Event')
    at(core, 'io.k8s.api.core.v1.EventSeries')
    at(v2, 'definitions', 'io.k8s.api.core.v1.Event')
    at(v2, 'definitions', 'io.k8s.api.events.v1.Event')
  })

  test('an Event schema has its group, version and kind', () => {
    assert.deepEqual(at(events, 'io.k8s.api.events.v1.Event')[KINDS], [
      { group: 'events.k8s.io', version: 'v1', kind: 'Event' },
    ])
    assert.deepEqual(at(core, 'io.k8s.api.core.v1.Event')[KINDS], [
      { group: '', version: 'v1', kind: 'Event' },
    ])
    assert.deepEqual(at(v2, 'definitions', `${META}.DeleteOptions`)[KINDS], [
      { group: '', version: 'v1', kind: 'DeleteOptions' },
      { group: 'events.k8s.io', version: 'v1', kind: 'DeleteOptions' },
    ])
  })

  test('schemas of self reviews have the names of Kubernetes', () => {
    const named = (schemas: JsonObject | undefined): string[] =>
      Object.keys(schemas ?? {}).filter((name) => name.startsWith('io.k8s.api.'))
    const AUTHENTICATION = 'io.k8s.api.authentication.v1'
    const AUTHORIZATION = 'io.k8s.api.authorization.v1'
    assert.deepEqual(named(authentication), [
      `${AUTHENTICATION}.SelfSubjectReview`,
      `${AUTHENTICATION}.SelfSubjectReviewStatus`,
      `${AUTHENTICATION}.UserInfo`,
    ])
    assert.deepEqual(named(authorization), [
      `${AUTHORIZATION}.FieldSelectorAttributes`,
      `${AUTHORIZATION}.LabelSelectorAttributes`,
      `${AUTHORIZATION}.NonResourceAttributes`,
      `${AUTHORIZATION}.NonResourceRule`,
      `${AUTHORIZATION}.ResourceAttributes`,
      `${AUTHORIZATION}.ResourceRule`,
      `${AUTHORIZATION}.SelfSubjectAccessReview`,
      `${AUTHORIZATION}.SelfSubjectAccessReviewSpec`,
      `${AUTHORIZATION}.SelfSubjectRulesReview`,
      `${AUTHORIZATION}.SelfSubjectRulesReviewSpec`,
      `${AUTHORIZATION}.SubjectAccessReviewStatus`,
      `${AUTHORIZATION}.SubjectRulesReviewStatus`,
    ])
    const name = `${AUTHORIZATION}.SelfSubjectAccessReview`
    const kinds = [
      { group: 'authorization.k8s.io', version: 'v1', kind: 'SelfSubjectAccessReview' },
    ]
    assert.deepEqual(at(authorization, name)[KINDS], kinds)
    assert.deepEqual(at(v2, 'definitions', name)[KINDS], kinds)
    const userInfo = at(authentication, `${AUTHENTICATION}.UserInfo`, 'properties')
    assert.deepEqual(at(userInfo, 'extra')['additionalProperties'], {
      type: 'array',
      items: { type: 'string' },
    })
  })

  test('required fields are those of the Kubernetes schema', () => {
    const all = { ...core, ...events, ...authentication, ...authorization }
    const required = Object.entries(all).flatMap(([name, schema]) =>
      isObject(schema) && schema['required'] !== undefined ? [[name, schema['required']]] : [],
    )
    assert.deepEqual(Object.fromEntries(required), {
      'io.k8s.api.core.v1.Event': ['metadata', 'involvedObject'],
      'io.k8s.api.core.v1.EventList': ['items'],
      'io.k8s.api.core.v1.NamespaceList': ['items'],
      'io.k8s.api.events.v1.Event': ['eventTime'],
      'io.k8s.api.events.v1.EventList': ['items'],
      'io.k8s.api.events.v1.EventSeries': ['count', 'lastObservedTime'],
      'io.k8s.api.authorization.v1.NonResourceRule': ['verbs'],
      'io.k8s.api.authorization.v1.ResourceRule': ['verbs'],
      'io.k8s.api.authorization.v1.SelfSubjectAccessReview': ['spec'],
      'io.k8s.api.authorization.v1.SelfSubjectRulesReview': ['spec'],
      'io.k8s.api.authorization.v1.SubjectAccessReviewStatus': ['allowed'],
      'io.k8s.api.authorization.v1.SubjectRulesReviewStatus': [
        'resourceRules',
        'nonResourceRules',
        'incomplete',
      ],
      [`${META}.FieldSelectorRequirement`]: ['key', 'operator'],
      [`${META}.LabelSelectorRequirement`]: ['key', 'operator'],
      [`${META}.OwnerReference`]: ['apiVersion', 'kind', 'name', 'uid'],
      [`${META}.WatchEvent`]: ['type', 'object'],
    })
  })

  test('lists and structs have their merge and ownership rules', () => {
    const rulesOf = (name: string): JsonObject =>
      Object.fromEntries(
        Object.entries(at(events, `${META}.ObjectMeta`, 'properties', name)).filter(([key]) =>
          key.startsWith('x-'),
        ),
      )
    assert.deepEqual(rulesOf('ownerReferences'), {
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'uid',
    })
    assert.deepEqual(rulesOf('finalizers'), {
      'x-kubernetes-list-type': 'set',
      'x-kubernetes-patch-strategy': 'merge',
    })
    assert.deepEqual(rulesOf('managedFields'), { 'x-kubernetes-list-type': 'atomic' })
    const atomic = Object.entries(events ?? {}).flatMap(([name, schema]) =>
      isObject(schema) && schema['x-kubernetes-map-type'] === 'atomic' ? [name] : [],
    )
    assert.deepEqual(atomic, ['io.k8s.api.core.v1.ObjectReference', `${META}.OwnerReference`])
  })

  test('fields have their wire types, and version 3 wraps references that have a description', () => {
    const event = at(events, 'io.k8s.api.events.v1.Event', 'properties')
    assert.deepEqual(at(event, 'eventTime')['allOf'], [
      { $ref: `#/components/schemas/${META}.MicroTime` },
    ])
    assert.equal(at(event, 'deprecatedCount')['format'], 'int32')
    const inV2 = at(v2, 'definitions', 'io.k8s.api.events.v1.Event', 'properties', 'eventTime')
    assert.equal(inV2['$ref'], `#/definitions/${META}.MicroTime`)
    assert.equal(typeof inV2['description'], 'string')
    const labels = at(events, `${META}.ObjectMeta`, 'properties', 'labels')
    assert.deepEqual(labels['additionalProperties'], { type: 'string' })
  })

  test('every schema and every field has a description', () => {
    const all = { ...events, ...core, ...authentication, ...authorization }
    const undocumented = Object.entries(all).flatMap(([name, schema]) => [
      ...(at(schema)['description'] === undefined ? [name] : []),
      ...Object.entries(at(schema)['properties'] ?? {}).flatMap(([field, property]) =>
        property.description === undefined ? [`${name}.${field}`] : [],
      ),
    ])
    assert.deepEqual(undocumented, [])
  })

  test('PATCH has its kind and the parameter fieldValidation, which kubectl requires', () => {
    for (const document of [v2, ...v3Documents.slice(0, 2)]) {
      const patches = operationsOf(document).filter(
        (operation) => operation['x-kubernetes-action'] === 'patch',
      )
      assert.ok(patches.length > 0)
      for (const patch of patches) {
        const kind = at(patch, KINDS)
        assert.deepEqual({ ...kind, group: '' }, { group: '', version: 'v1', kind: 'Event' })
        assert.ok(
          (patch['parameters'] as JsonObject[]).some(
            (parameter) => parameter['name'] === 'fieldValidation' && parameter['in'] === 'query',
          ),
        )
      }
    }
  })

  test('summaries have a schema of all their fields', () => {
    const namesIn = (schemas: JsonObject, kind: string): string[] =>
      Object.keys(at(schemas, `dev.tidings.v1alpha1.${kind}`, 'properties')).sort()
    const own = at(openApiV3(tidingsOpenApi, 'v1.37.0'), 'components', 'schemas')
    for (const schemas of [at(v2, 'definitions'), own]) {
      assert.deepEqual(namesIn(schemas, 'EventSummary'), [
        'apiVersion',
        'before',
        'estimated',
        'events',
        'firstTime',
        'group',
        'kind',
        'lastTime',
        'metadata',
        'objects',
        'occurrences',
        'ratePerMinute',
        'sampleNote',
        'warnings',
        'workloadRule',
      ])
      assert.deepEqual(namesIn(schemas, 'EventHistogramCount'), [
        'estimated',
        'events',
        'name',
        'occurrences',
      ])
    }
  })

  test('operations have unique ids, which generated clients use', () => {
    const ids = operationsOf(v2).map(({ operationId }) => operationId)
    assert.equal(new Set(ids).size, ids.length)
    assert.equal(ids.length, 40)
    for (const id of [
      'getEventsV1APIResources',
      'listEventsV1EventForAllNamespaces',
      'createCoreV1NamespacedEvent',
      'deleteEventsV1CollectionNamespacedEvent',
      'watchCoreV1NamespacedEventList',
      'createAuthenticationV1SelfSubjectReview',
      'listCoreV1Namespace',
      'readTidingsDevV1alpha1Cluster',
      'createAuthorizationV1SelfSubjectAccessReview',
      'createAuthorizationV1SelfSubjectRulesReview',
    ]) {
      assert.ok(ids.includes(id), id)
    }
  })

  test('every path has a parameter for each name in braces', () => {
    for (const [path, item] of Object.entries(at(v2, 'paths'))) {
      const wanted = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort()
      for (const operation of Object.values(at(item))) {
        const parameters = at(operation)['parameters'] as JsonObject[]
        const given = parameters.filter(({ in: place }) => place === 'path')
        assert.deepEqual(given.map(({ name }) => name).sort(), wanted, path)
      }
    }
  })

  test('another group has its own paths, ids and schema names', () => {
    const document = openApiV3(eventsOpenApi(eventsGroup('events.example.dev')), 'v1.37.0')
    at(document, 'components', 'schemas', 'dev.example.events.v1.Event')
    const path = '/apis/events.example.dev/v1/namespaces/{namespace}/events/{name}'
    const { operationId } = at(document, 'paths', path, 'get')
    assert.equal(operationId, 'readEventsExampleDevV1NamespacedEvent')
  })
})
