import type { Random } from '../../../support/random.ts'
import { hostileText } from './values.ts'

const RANGES = [
  'application/json',
  'application/yaml',
  '*/*',
  'application/*',
  'text/html',
  'application/vnd.kubernetes.protobuf',
  'application/json;stream=watch',
  'APPLICATION/JSON',
  '*',
  '*/json',
  'application/',
  '/',
  '',
] as const
const PARAMETERS = [
  'as=Table',
  'as=PartialObjectMetadata',
  'as=PartialObjectMetadataList',
  'as=APIGroupDiscoveryList',
  'g=meta.k8s.io',
  'v=v1',
  'v=v1beta1',
  'v=v2',
  'q=0.5',
  'q=0',
  'q=-1',
  'q=1e309',
  'q=x',
  'pretty=1',
  'sv=v1',
  'sv=v2',
  'stream=watch',
  'charset=utf-8',
  'charset="a;b"',
  '=',
  '__proto__=1',
  'constructor=x',
] as const
const TABLE = 'as=Table;g=meta.k8s.io;v=v1'
const METADATA = 'as=PartialObjectMetadata;g=meta.k8s.io;v=v1'

export function acceptHeader(random: Random): string {
  const clauses = Array.from({ length: 1 + random.below(4) }, () => clause(random))
  return clauses.join(random.pick([',', ', ', ' ,', ';']))
}

function clause(random: Random): string {
  if (random.chance(0.05)) return headerText(random)
  const known = random.chance(0.3) ? [random.pick([TABLE, METADATA, `${METADATA}List`])] : []
  const others = Array.from({ length: random.below(4) }, () => random.pick(PARAMETERS))
  return [random.pick(RANGES), ...known, ...others].join(random.pick([';', '; ', ' ;']))
}

const CONTENT_TYPES = [
  'application/json',
  'application/json; charset=utf-8',
  'application/json;charset="utf-8"',
  'application/json;',
  'application/json;;',
  'Application/JSON',
  'application/yaml',
  'text/yaml',
  'application/vnd.kubernetes.protobuf',
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
  'application',
  '*/*',
  '',
  'application/json,application/yaml',
  'multipart/form-data; boundary="',
  '__proto__',
  'constructor',
] as const

export function contentType(random: Random): string {
  return random.chance(0.9) ? random.pick(CONTENT_TYPES) : headerText(random)
}

/** What Node allows in a header: no control characters, no code points above a byte. */
export function headerText(random: Random): string {
  return Buffer.from(hostileText(random).toWellFormed())
    .toString('latin1')
    .replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, ' ')
    .trim()
}
