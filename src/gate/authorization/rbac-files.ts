/** Reads the policy of `--rbac-policy-path`: files, and folders of files. */
import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { readBounded } from '../../lib/files/bounded-file.ts'
import { yamlDocuments } from '../../lib/yaml-documents.ts'
import { fullName, objectsIn, type PolicyObject, readPolicyObject } from './rbac-objects.ts'

/** The content of the files at one time. */
export interface PolicyFiles {
  readonly objects: readonly PolicyObject[]
  /** File and document of each, by kind and name: `RoleBinding ns/name`. */
  readonly places: ReadonlyMap<string, string>
  /** Of the content of all files. */
  readonly digest: string
}

/** Far more than a large cluster has; all is held in memory, and read again on a change. */
const BYTES_MAX = 4 * 1024 * 1024
const FILES_MAX = 1000
/** Enough to work with; a file of another kind would otherwise fill the screen. */
const MISTAKES_SHOWN_MAX = 10

/**
 * Rejects if anything is wrong, with file, document and field: a part of a policy is not used.
 * Returns `current` itself when the content of the files is unchanged.
 */
export async function loadPolicyFiles(
  paths: readonly string[],
  current?: PolicyFiles,
): Promise<PolicyFiles> {
  const files = await readFiles(paths)
  const hash = createHash('sha256')
  for (const { path, text } of files) hash.update(`${path}\n${text.length}\n`).update(text)
  const digest = hash.digest('hex')
  if (digest === current?.digest) return current
  const reading = new Reading()
  for (const { path, text } of files) await reading.add(path, text)
  return { objects: reading.finish(), places: reading.places, digest }
}

/** Merges two policies. Of objects of the same kind, namespace and name, that of `above` wins. */
export function overlaid(
  below: readonly PolicyObject[],
  above: readonly PolicyObject[],
): readonly PolicyObject[] {
  const byName = new Map(below.map((object) => [fullName(object), object]))
  for (const object of above) byName.set(fullName(object), object)
  return [...byName.values()]
}

interface PolicyText {
  readonly path: string
  readonly text: string
}

async function readFiles(paths: readonly string[]): Promise<readonly PolicyText[]> {
  const files: PolicyText[] = []
  let bytes = 0
  for (const path of (await Promise.all(paths.map(filesAt))).flat()) {
    bytes += (await stat(path)).size
    if (bytes > BYTES_MAX)
      throw new Error(`${path}: a policy may have at most ${BYTES_MAX} bytes in total`)
    if (files.length >= FILES_MAX)
      throw new Error(`${path}: a policy may have at most ${FILES_MAX} files`)
    files.push({ path, text: String(await readBounded(path, BYTES_MAX)) })
  }
  return files
}

/** Hidden files are skipped: Kubernetes keeps old versions of mounted secrets in them. */
async function filesAt(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path]
  const names = await readdir(path)
  return names
    .filter((name) => !name.startsWith('.') && /\.(ya?ml|json)$/.test(name))
    .sort()
    .map((name) => join(path, name))
}

/** Collects objects and mistakes of all files. */
class Reading {
  readonly #objects: PolicyObject[] = []
  readonly #mistakes: string[] = []
  /** File and document of each object. */
  readonly places = new Map<string, string>()

  async add(path: string, text: string): Promise<void> {
    try {
      for (const { number, value } of yamlDocuments(text)) {
        const place = `${path}, document ${number}`
        this.#attempt(place, () => {
          for (const found of objectsIn(value)) {
            this.#attempt(place, () => this.#keep(readPolicyObject(found), place))
          }
        })
        // Yield between two documents, so that a large policy does not block requests.
        await setImmediate()
      }
    } catch (error) {
      this.#mistakes.push(`${path}, ${messageOf(error)}`)
    }
  }

  finish(): readonly PolicyObject[] {
    const count = this.#mistakes.length
    if (count === 0) return this.#objects
    const shown = this.#mistakes.slice(0, MISTAKES_SHOWN_MAX).join('; ')
    const more = count > MISTAKES_SHOWN_MAX ? `; and ${count - MISTAKES_SHOWN_MAX} more` : ''
    throw new Error(`${shown}${more}`)
  }

  #keep(object: PolicyObject, place: string): void {
    const name = fullName(object)
    const earlier = this.places.get(name)
    if (earlier !== undefined) throw new Error(`${name} is already defined in ${earlier}`)
    this.places.set(name, place)
    this.#objects.push(object)
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
