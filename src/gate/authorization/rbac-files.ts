/** The policy of `--rbac-policy-path`: files, and folders of files. */
import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { yamlDocuments } from '../../codec/yaml-documents.ts'
import { readBounded } from '../../lib/bounded-file.ts'
import { objectsIn, type PolicyObject, readPolicyObject, shownObject } from './rbac-objects.ts'

/** Objects as the files have them at a time. */
export interface PolicyFiles {
  readonly objects: readonly PolicyObject[]
  /** File and document of each, by kind and name: `RoleBinding ns/name`. */
  readonly places: ReadonlyMap<string, string>
  /** Tells one state of the files from another. */
  readonly digest: string
}

/** Far more than the roles of a large cluster; they are held in memory, and read anew at a change. */
const BYTES_MAX = 4 * 1024 * 1024
const FILES_MAX = 1000
/** Enough to go on with; a file of another kind would otherwise fill the screen. */
const MISTAKES_SHOWN_MAX = 10

/**
 * Rejects, naming file, document and field of what is wrong, if anything is: half a policy is none.
 * Gives `current` itself when the files still say the same.
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

/** The later of two of the same kind, namespace and name takes the place of the earlier. */
export function overlaid(
  below: readonly PolicyObject[],
  above: readonly PolicyObject[],
): readonly PolicyObject[] {
  const byName = new Map(below.map((object) => [shownObject(object), object]))
  for (const object of above) byName.set(shownObject(object), object)
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
      throw new Error(`${path}: a policy has at most ${BYTES_MAX} bytes in all`)
    if (files.length >= FILES_MAX)
      throw new Error(`${path}: a policy has at most ${FILES_MAX} files`)
    files.push({ path, text: String(await readBounded(path, BYTES_MAX)) })
  }
  return files
}

/** What is hidden in a folder is skipped: mounted secrets keep their older states there. */
async function filesAt(path: string): Promise<readonly string[]> {
  if (!(await stat(path)).isDirectory()) return [path]
  const names = await readdir(path)
  return names
    .filter((name) => !name.startsWith('.') && /\.(ya?ml|json)$/.test(name))
    .sort()
    .map((name) => join(path, name))
}

/** Objects and mistakes, from one file after the other. */
class Reading {
  readonly #objects: PolicyObject[] = []
  readonly #mistakes: string[] = []
  /** Where an object of that name was found. */
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
        // Requests have their turn between two documents.
        await nextTurn()
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
    const name = shownObject(object)
    const earlier = this.places.get(name)
    if (earlier !== undefined) throw new Error(`${name} is there already, in ${earlier}`)
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
