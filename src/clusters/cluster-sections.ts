/** Parses a clusters file. Errors name the path of the field. */
import { dirname, resolve } from 'node:path'
import { TIDINGS_API_VERSION } from '../api/tidings-group.ts'
import { labelProblems } from '../api/validation/names.ts'
import {
  checkedText,
  configurationIn,
  listOf,
  mistake,
  objectOf,
  oneOf,
  shown,
  textOf,
} from '../lib/files/config-fields.ts'
import { parseDuration } from '../lib/go/duration.ts'
import { type Json, type JsonObject, memberOf } from '../lib/json.ts'

const KIND = 'ClusterConfiguration'
const CLUSTERS_MAX = 200
/** Each namespace is one watch at the origin. */
const NAMESPACES_MAX = 100
/** The default of kube-apiserver's `--event-ttl`. */
const ORIGIN_TTL = '1h'
const TOKEN_NAMES_MAX = 20
const IDENTITY_BYTES_MAX = 253
const ORIGIN_TTL_MS_MIN = 60_000
const ORIGIN_TTL_MS_MAX = 10 * 365 * 86_400_000

export interface MirrorConfig {
  /** Undefined for all namespaces. */
  readonly namespaces: readonly string[] | undefined
  /** Whether deletes at the origin, other than by its TTL, are repeated here. */
  readonly deletes: 'never' | 'explicit'
  /** The TTL of events at the origin; distinguishes expired events from deleted ones. */
  readonly originTtlMs: number
  /** Identifies the mirrored cluster: when it changes, all events are listed again. */
  readonly identity?: string | undefined
  /** Whether the owners of pods, ReplicaSets and Jobs are read, too. */
  readonly owners?: boolean | undefined
}

/** Tokens that may be sent to a cluster's API server: none without issuers and `opaque`. */
export interface ClusterTokens {
  /** Exact `iss` claims. */
  readonly issuers: readonly string[]
  /** A token must have one of these as `aud`. */
  readonly audiences: readonly string[]
  /** Whether tokens that are not JWTs, whose issuer is unknown, may be sent. */
  readonly opaque: boolean
}

export interface ClusterSection {
  readonly name: string
  /** The path is absolute. */
  readonly kubeconfig: { readonly path: string; readonly context: string | undefined } | undefined
  readonly mirror: MirrorConfig | undefined
  readonly authorization: 'rbac' | 'origin'
  /** Undefined when no token is sent to the cluster. */
  readonly tokens?: ClusterTokens | undefined
}

/** Paths in the file are relative to `file`. Throws an error that names the invalid field. */
export function readClusters(text: string, file: string): readonly ClusterSection[] {
  const value = configurationIn(text, { apiVersion: TIDINGS_API_VERSION, kind: KIND })
  const configuration = objectOf(value, '', ['apiVersion', 'kind', 'clusters'])
  const entries = listOf(configuration, 'clusters', '', CLUSTERS_MAX)
  const names = new Set<string>()
  return entries.map((entry, at) => {
    const section = readSection(entry, `clusters[${at}]`, dirname(file))
    if (names.has(section.name)) throw mistake(`clusters[${at}].name`, 'is used twice')
    names.add(section.name)
    return section
  })
}

const SECTION_FIELDS = ['name', 'kubeconfig', 'context', 'mirror', 'authorization', 'tokens']

function readSection(value: Json, at: string, folder: string): ClusterSection {
  const entry = objectOf(value, at, SECTION_FIELDS)
  const name = nameOf(memberOf(entry, 'name'), `${at}.name`)
  const path = textOf(entry, 'kubeconfig', at)
  const context = textOf(entry, 'context', at)
  const mirror = memberOf(entry, 'mirror')
  const authorization = oneOf(entry, 'authorization', at, ['rbac', 'origin'])
  if (path === undefined) {
    const needs = { context, mirror, authorization: authorization === 'origin' || undefined }
    for (const [field, given] of Object.entries(needs)) {
      if (given !== undefined) throw mistake(`${at}.kubeconfig`, `is missing: ${field} needs it`)
    }
  }
  const tokens = memberOf(entry, 'tokens')
  if (tokens !== undefined && authorization !== 'origin') {
    throw mistake(`${at}.tokens`, 'needs authorization: origin')
  }
  return {
    name,
    kubeconfig: path === undefined ? undefined : { path: resolve(folder, path), context },
    mirror: mirror === undefined ? undefined : readMirror(mirror, `${at}.mirror`),
    authorization,
    ...(tokens === undefined ? {} : { tokens: readTokens(tokens, `${at}.tokens`) }),
  }
}

function readTokens(value: Json, at: string): ClusterTokens {
  const tokens = objectOf(value, at, ['issuers', 'audiences', 'opaque'])
  const issuers = readTexts(tokens, 'issuers', at)
  const opaque = flagOf(tokens, 'opaque', at)
  // An API server without --api-audiences accepts its issuers as audiences.
  return { issuers, audiences: readTexts(tokens, 'audiences', at, issuers), opaque }
}

function readTexts(
  tree: JsonObject,
  name: string,
  at: string,
  missing: readonly string[] = [],
): readonly string[] {
  if (memberOf(tree, name) === undefined) return missing
  return listOf(tree, name, at, TOKEN_NAMES_MAX).map((item, index) =>
    checkedText(item, `${at}.${name}[${index}]`),
  )
}

const MIRROR_FIELDS = ['namespaces', 'deletes', 'originEventTTL', 'identity', 'owners']

function readMirror(value: Json, at: string): MirrorConfig {
  const mirror = objectOf(value, at, MIRROR_FIELDS)
  const deletes = oneOf(mirror, 'deletes', at, ['never', 'explicit'])
  const ttl = textOf(mirror, 'originEventTTL', at)
  if (deletes === 'explicit' && ttl === undefined) {
    throw mistake(
      `${at}.originEventTTL`,
      "is required with deletes: explicit: write the --event-ttl of the cluster's API server, 1h if it is not set",
    )
  }
  return {
    namespaces: readNamespaces(mirror, at),
    deletes,
    originTtlMs: ttlOf(ttl ?? ORIGIN_TTL, `${at}.originEventTTL`),
    ...identityOf(mirror, at),
    ...(flagOf(mirror, 'owners', at) ? { owners: true } : {}),
  }
}

function flagOf(tree: JsonObject, name: string, at: string): boolean {
  const flag = memberOf(tree, name) ?? false
  if (typeof flag !== 'boolean') throw mistake(`${at}.${name}`, 'must be true or false')
  return flag
}

function identityOf(mirror: JsonObject, at: string): { identity?: string } {
  const identity = textOf(mirror, 'identity', at)
  if (identity === undefined) return {}
  if (Buffer.byteLength(identity) > IDENTITY_BYTES_MAX) {
    throw mistake(`${at}.identity`, `is longer than ${IDENTITY_BYTES_MAX} bytes`)
  }
  return { identity }
}

function readNamespaces(mirror: JsonObject, at: string): readonly string[] | undefined {
  if (memberOf(mirror, 'namespaces') === undefined) return undefined
  const found = new Set<string>()
  for (const [index, item] of listOf(mirror, 'namespaces', at, NAMESPACES_MAX).entries()) {
    const field = `${at}.namespaces[${index}]`
    const name = nameOf(item, field)
    if (found.has(name)) throw mistake(field, 'is listed twice')
    found.add(name)
  }
  if (found.size === 0) throw mistake(`${at}.namespaces`, 'is empty: remove it to mirror all')
  return [...found]
}

function ttlOf(text: string, field: string): number {
  let ms: number
  try {
    ms = parseDuration(text)
  } catch (error) {
    throw mistake(field, error instanceof Error ? error.message : String(error))
  }
  if (ms < ORIGIN_TTL_MS_MIN || ms > ORIGIN_TTL_MS_MAX) {
    throw mistake(field, 'must be from 1m to 87600h')
  }
  return ms
}

function nameOf(value: Json | undefined, field: string): string {
  if (value === undefined) throw mistake(field, 'is missing')
  const name = checkedText(value, field)
  const [problem] = labelProblems(name)
  if (problem !== undefined) throw mistake(field, `${shown(name)}: ${problem}`)
  return name
}
