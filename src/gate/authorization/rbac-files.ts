/**
 * Reads the policy of `--rbac-policy-path`: files, and folders of files. Files in the root of a
 * folder apply to the default cluster, those in `clusters/<name>/` to that cluster, and those in
 * `clusters/_all/` to every cluster.
 */
import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { isDnsLabel } from '../../api/validation/names.ts'
import { readBounded } from '../../lib/files/bounded-file.ts'
import { yamlDocuments } from '../../lib/text/yaml-documents.ts'
import { fullName, objectsIn, type PolicyObject, readPolicyObject } from './rbac-objects.ts'
import { getOrCreate } from './rule-set.ts'

export interface PolicyFiles {
  /** Keyed by cluster; the objects that apply to every cluster are under `EVERY_CLUSTER`. */
  readonly scopes: ReadonlyMap<string, ScopeFiles>
  /** Digest of the paths and contents of all files. */
  readonly digest: string
}

export interface ScopeFiles {
  readonly objects: readonly PolicyObject[]
  /** File and document of each object, keyed by kind and name: `RoleBinding ns/name`. */
  readonly places: ReadonlyMap<string, string>
}

/** The folder of objects that apply to every cluster. No cluster can have this name. */
export const EVERY_CLUSTER = '_all'
const CLUSTERS_FOLDER = 'clusters'

/** Far more than a large cluster needs. Everything is in memory, and read again on a change. */
const BYTES_MAX = 4 * 1024 * 1024
const FILES_MAX = 1000
/** Objects for every cluster are indexed again for each cluster that has files of its own. */
const INDEXED_BYTES_MAX = 16 * 1024 * 1024
/** A file of another kind would otherwise fill the screen. */
const MISTAKES_SHOWN_MAX = 10

export interface PolicyPaths {
  readonly paths: readonly string[]
  /** The cluster of files outside of any cluster's folder. */
  readonly clusterName: string
}

/**
 * Rejects if anything is wrong, and names file, document and field: a policy is never used in part.
 * Returns `current` itself when the content of the files is unchanged.
 */
export async function loadPolicyFiles(
  where: PolicyPaths,
  current?: PolicyFiles,
): Promise<PolicyFiles> {
  const files = await readFiles(where)
  const hash = createHash('sha256')
  for (const { path, text } of files) hash.update(`${path}\n${text.length}\n`).update(text)
  const digest = hash.digest('hex')
  if (digest === current?.digest) return current
  checkIndexedBytes(files)
  const reading = new Reading()
  for (const file of files) await reading.add(file)
  return { scopes: reading.finish(), digest }
}

/** Merges two policies. An object of `above` replaces one of the same kind, namespace and name. */
export function overlaid(
  below: readonly PolicyObject[],
  above: readonly PolicyObject[],
): readonly PolicyObject[] {
  const byName = new Map(below.map((object) => [fullName(object), object]))
  for (const object of above) byName.set(fullName(object), object)
  return [...byName.values()]
}

interface PolicyPath {
  readonly path: string
  /** A cluster, or EVERY_CLUSTER. */
  readonly scope: string
}

interface PolicyText extends PolicyPath {
  readonly text: string
}

/** Reads the files for every cluster first, since no other file may define the same objects. */
async function readFiles({ paths, clusterName }: PolicyPaths): Promise<readonly PolicyText[]> {
  const files: PolicyText[] = []
  let bytes = 0
  const found = (await Promise.all(paths.map((path) => filesAt(path, clusterName)))).flat()
  const ofEvery = found.filter(({ scope }) => scope === EVERY_CLUSTER)
  const others = found.filter(({ scope }) => scope !== EVERY_CLUSTER)
  for (const { path, scope } of [...ofEvery, ...others]) {
    bytes += (await stat(path)).size
    if (bytes > BYTES_MAX)
      throw new Error(`${path}: a policy may have at most ${BYTES_MAX} bytes in total`)
    if (files.length >= FILES_MAX)
      throw new Error(`${path}: a policy may have at most ${FILES_MAX} files`)
    files.push({ path, scope, text: String(await readBounded(path, BYTES_MAX)) })
  }
  return files
}

async function filesAt(path: string, clusterName: string): Promise<readonly PolicyPath[]> {
  if (!(await stat(path)).isDirectory()) return [{ path, scope: clusterName }]
  const names = await visibleNames(path)
  const ofDefault = policyFiles(names).map((name) => ({
    path: join(path, name),
    scope: clusterName,
  }))
  const folder = join(path, CLUSTERS_FOLDER)
  const hasClusters = names.includes(CLUSTERS_FOLDER) && (await stat(folder)).isDirectory()
  return hasClusters ? [...ofDefault, ...(await filesOfClusters(folder))] : ofDefault
}

async function filesOfClusters(folder: string): Promise<readonly PolicyPath[]> {
  const files: PolicyPath[] = []
  for (const scope of await visibleNames(folder)) {
    const path = join(folder, scope)
    if (!(await stat(path)).isDirectory()) {
      if (policyFiles([scope]).length === 0) continue
      throw new Error(
        `${path}: must be in a folder with the name of a cluster, or ${EVERY_CLUSTER}`,
      )
    }
    if (scope !== EVERY_CLUSTER && !isDnsLabel(scope)) {
      throw new Error(
        `${path}: the name of this folder is neither that of a cluster (a DNS label) nor ${EVERY_CLUSTER}`,
      )
    }
    const names = policyFiles(await visibleNames(path))
    files.push(...names.map((name) => ({ path: join(path, name), scope })))
  }
  return files
}

/** Skips hidden files, in which Kubernetes stores old versions of mounted secrets. */
async function visibleNames(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => !name.startsWith('.')).sort()
}

function policyFiles(names: readonly string[]): readonly string[] {
  return names.filter((name) => /\.(ya?ml|json)$/.test(name))
}

function checkIndexedBytes(files: readonly PolicyText[]): void {
  const ofEvery = files.filter(({ scope }) => scope === EVERY_CLUSTER)
  const scopes = new Set(files.map(({ scope }) => scope))
  const bytes = ofEvery.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
  if (bytes * scopes.size <= INDEXED_BYTES_MAX) return
  throw new Error(
    `${ofEvery[0]?.path ?? ''}: the files of ${EVERY_CLUSTER} have ${bytes} bytes, which is too much for ${scopes.size - 1} clusters with files of their own: at most ${INDEXED_BYTES_MAX} bytes in total`,
  )
}

interface ScopeReading extends ScopeFiles {
  readonly objects: PolicyObject[]
  readonly places: Map<string, string>
}

/** Collects objects and mistakes of all files. */
class Reading {
  readonly #mistakes: string[] = []
  readonly #scopes = new Map<string, ScopeReading>()

  async add({ path, scope, text }: PolicyText): Promise<void> {
    const into = getOrCreate(this.#scopes, scope, () => ({ objects: [], places: new Map() }))
    try {
      for (const { number, value } of yamlDocuments(text)) {
        const place = `${path}, document ${number}`
        this.#attempt(place, () => {
          for (const found of objectsIn(value)) {
            this.#attempt(place, () => this.#add(readPolicyObject(found), place, into))
          }
        })
        // Yield between two documents, so that a large policy does not block requests.
        await setImmediate()
      }
    } catch (error) {
      this.#mistakes.push(`${path}, ${messageOf(error)}`)
    }
  }

  finish(): PolicyFiles['scopes'] {
    const count = this.#mistakes.length
    if (count === 0) return this.#scopes
    const shown = this.#mistakes.slice(0, MISTAKES_SHOWN_MAX).join('; ')
    const more = count > MISTAKES_SHOWN_MAX ? `; and ${count - MISTAKES_SHOWN_MAX} more` : ''
    throw new Error(`${shown}${more}`)
  }

  /** Refuses a second object of the same name, which would change what bindings grant. */
  #add(object: PolicyObject, place: string, { objects, places }: ScopeReading): void {
    const name = fullName(object)
    const earlier = places.get(name) ?? this.#scopes.get(EVERY_CLUSTER)?.places.get(name)
    if (earlier !== undefined) throw new Error(`${name} is already defined in ${earlier}`)
    places.set(name, place)
    objects.push(object)
  }

  #attempt(place: string, read: () => void): void {
    try {
      read()
    } catch (error) {
      this.#mistakes.push(`${place}: ${messageOf(error)}`)
    }
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
