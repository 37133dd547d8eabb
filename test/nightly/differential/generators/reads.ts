/** Requests that only read. */
import type { Random } from '../../../support/random.ts'
import { shardSelector } from '../../../support/shards.ts'
import type { GroupName, Step } from '../step.ts'
import { NAMES } from './values.ts'

const PROTOBUF = 'application/vnd.kubernetes.protobuf'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const METADATA = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'

const FORMS = [
  'application/json',
  'application/yaml',
  'application/yaml',
  PROTOBUF,
  PROTOBUF,
  PROTOBUF,
  TABLE,
  TABLE,
  METADATA,
  `${METADATA}List`,
  `${PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io`,
  `${PROTOBUF};as=PartialObjectMetadataList;v=v1;g=meta.k8s.io`,
  `${TABLE},application/json`,
  `${PROTOBUF},application/json`,
  'application/json;q=0.5,application/yaml',
  '*/*',
  'text/html',
  'application/json;as=Table;v=v1beta1;g=meta.k8s.io',
  'application/json;as=Bogus;v=v1;g=meta.k8s.io',
  'application/json;pretty=1',
] as const

const ODD_NAMES = [
  'Bad_Name',
  'a%20b',
  'none',
  'n0/status',
  'N0',
  'n0/scale',
  '%C3%A9',
  'a%2Fb',
] as const

/** A version that no server has returned. */
const HANDMADE_TOKEN = Buffer.from('{"v":"meta.k8s.io/v1","rv":1,"start":"a"}').toString(
  'base64url',
)

export function get(random: Random, group: GroupName): Step {
  const at = random.chance(0.05) ? random.pick(ODD_NAMES) : random.pick(NAMES)
  const query: [string, string][] = []
  if (random.chance(0.15)) {
    query.push(['resourceVersion', random.pick(['0', '@{list}', '', 'abc', '-1', '1'])])
  }
  if (random.chance(0.06)) query.push(['pretty', random.pick(['true', '0', 'x'])])
  if (random.chance(0.06))
    query.push(['includeObject', random.pick(['None', 'Object', 'Metadata', 'bad'])])
  return { verb: 'get', group, at, query, headers: form(random, 0.6) }
}

export function list(random: Random, group: GroupName): Step {
  const query = random.chance(0.6) ? selection(random, group) : []
  if (random.chance(0.35)) {
    query.push(['limit', random.pick(['1', '2', '1', '2', '0', '-1', 'x', '', '1.5', '500'])])
  }
  if (random.chance(0.2))
    query.push([
      'continue',
      random.pick(['@{continue}', '@{continue}', '@{continue}', 'bad', '', HANDMADE_TOKEN]),
    ])
  if (random.chance(0.2)) {
    query.push(['resourceVersion', random.pick(['0', '@{list}', '@{list}', '', 'abc', '-1'])])
  }
  if (random.chance(0.15)) {
    query.push(['resourceVersionMatch', random.pick(['Exact', 'NotOlderThan', 'bad', ''])])
  }
  if (random.chance(0.05)) query.push(['pretty', 'true'])
  if (random.chance(0.03)) query.push(['sendInitialEvents', random.pick(['true', 'false', 'x'])])
  if (random.chance(0.03)) query.push(['timeoutSeconds', random.pick(['1', 'x', '0', '-1'])])
  if (random.chance(0.08))
    query.push(['includeObject', random.pick(['None', 'Object', 'Metadata', 'bad'])])
  return { verb: 'list', group, at: '', query, headers: form(random, 0.5) }
}

export function watch(random: Random, group: GroupName): Step {
  const query = random.chance(0.4) ? selection(random, group) : []
  query.push(['watch', random.pick(['1', 'true'])], ['timeoutSeconds', '1'])
  const from = random.pick([
    '@{list}',
    '@{list}',
    '@{list}',
    '@{rv n0}',
    '@{old n0}',
    '0',
    '',
    'abc',
  ])
  if (random.chance(0.9)) query.push(['resourceVersion', from])
  if (random.chance(0.3)) query.push(['allowWatchBookmarks', random.pick(['true', 'false'])])
  if (random.chance(0.15)) {
    query.push(['resourceVersionMatch', random.pick(['Exact', 'NotOlderThan', 'NotOlderThan'])])
  }
  if (random.chance(0.2)) query.push(['sendInitialEvents', random.pick(['true', 'true', 'false'])])
  if (random.chance(0.05)) query.push(['limit', '1'])
  const headers: Record<string, string> = random.chance(0.5)
    ? {
        accept: random.pick([
          TABLE,
          METADATA,
          'application/json;stream=watch',
          'application/yaml',
          PROTOBUF,
          `${PROTOBUF};stream=watch`,
          'text/html',
        ]),
      }
    : {}
  const isOldWatch = random.chance(0.15)
  const at = isOldWatch && random.chance(0.5) ? 'n0' : ''
  return { verb: 'watch', group, at, isOldWatch, query, headers }
}

function form(random: Random, chance: number): Record<string, string> {
  return random.chance(chance) ? { accept: random.pick(FORMS) } : {}
}

const LABEL_SELECTORS = [
  'app',
  '!app',
  'app=v',
  'app==v',
  'app!=v',
  'app in (v,w)',
  'app notin (v)',
  'app in ()',
  'app in (v',
  'app,tier',
  'app=v,tier=w',
  'app=',
  'app>1',
  'app<x',
  ',',
  '',
  ' ',
  'app = v ',
  'a b',
  'app in (,v)',
  '=v',
  'é=v',
  'app=é',
  '!',
  '!app=v',
  'app=v,',
  ',app',
  'app=(v)',
  '-a=v',
  'a/b/c=v',
  'app in(v)',
  'app=v w',
  'app===v',
  'in',
  'in in (in)',
  'notin',
  'app in (v,v)',
  'app,!app',
  'app>=1',
  'app gt 1',
  `${'x'.repeat(64)}=a`,
  `app=${'x'.repeat(64)}`,
  'app\t=\nv',
  '#',
  'app=#',
  'example.com/role notin (d)',
  'App=v',
  'app>01',
  'app> 1',
  'app<-1',
  'app!=',
] as const
const FIELD_NAMES = {
  core: [
    'metadata.name',
    'metadata.namespace',
    'reason',
    'type',
    'reportingComponent',
    'source',
    'involvedObject.kind',
    'involvedObject.name',
    'involvedObject.uid',
    'involvedObject.namespace',
    'involvedObject.apiVersion',
    'involvedObject.resourceVersion',
    'involvedObject.fieldPath',
  ],
  events: [
    'metadata.name',
    'metadata.namespace',
    'reason',
    'type',
    'reportingController',
    'source',
    'regarding.kind',
    'regarding.name',
    'regarding.namespace',
    'regarding.uid',
    'regarding.apiVersion',
    'regarding.resourceVersion',
    'regarding.fieldPath',
  ],
} as const
const OTHER_FIELDS = [
  'involvedObject.name',
  'regarding.name',
  'action',
  'note',
  'message',
  'bogus',
  '',
] as const
const FIELD_VALUES = [
  'n0',
  'n1',
  'Pod',
  'Started',
  'Normal',
  'p',
  '',
  '@{ns}',
  'a\\,b',
  'a\\=b',
  'x\\',
  'kubelet',
  'é',
] as const

const NAMESPACE = 'object.metadata.namespace'
const ALL_UIDS = shardSelector(0, 1)
/** Each server gives an event its own uid, so that only all of them can be compared. */
const SHARD_SELECTORS = [
  ALL_UIDS,
  shardSelector(0, 2, NAMESPACE),
  shardSelector(1, 2, NAMESPACE),
  shardSelector(2, 3, NAMESPACE),
  `${shardSelector(0, 4, NAMESPACE)} || ${shardSelector(2, 4, NAMESPACE)}`,
  `(${shardSelector(3, 4, NAMESPACE)}||\n (${shardSelector(1, 4, NAMESPACE)} ))`,
  shardSelector(0, 2, NAMESPACE).replaceAll("'", '"'),
  shardSelector(0, 2, ` ${NAMESPACE} `),
  `${ALL_UIDS} || ${shardSelector(0, 1, NAMESPACE)}`,
  `${ALL_UIDS} && ${ALL_UIDS}`,
  shardSelector(0, 2, 'object.metadata.name'),
  "shardRange(object.metadata.uid, '0x0', '0x8')",
  "shardRange(object.metadata.uid, '0x8000000000000000', '0x0000000000000000')",
  "shardRange(object.metadata.uid, '0X0000000000000000', '0x8000000000000000')",
  "shardRange(object.metadata.uid, '0x000000000000000A', '0x8000000000000000')",
  "shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000001')",
  'shardRange(object.metadata.uid, 0, 8)',
  "shardRange(object.metadata.uid, '0x0000000000000000')",
  `(${ALL_UIDS}`,
  `${ALL_UIDS} ||`,
  'metadata.uid',
  ' ',
  '',
] as const

/** Selects by label, by field, by shard, or by several of them. */
export function selection(random: Random, group: GroupName): [string, string][] {
  const query: [string, string][] = []
  if (random.chance(0.5)) query.push(['labelSelector', random.pick(LABEL_SELECTORS)])
  if (random.chance(0.15)) query.push(['shardSelector', random.pick(SHARD_SELECTORS)])
  if (random.chance(0.6)) {
    const terms = Array.from({ length: 1 + random.below(2) }, () => {
      const field = random.chance(0.9)
        ? random.pick<string>(FIELD_NAMES[group] as readonly string[] as [string, ...string[]])
        : random.pick<string>(OTHER_FIELDS)
      const operator = random.pick(['=', '=', '=', '==', '!=', '', '>', ' = '])
      return `${field}${operator}${random.pick(FIELD_VALUES)}`
    })
    query.push(['fieldSelector', terms.join(',')])
  }
  return query
}
