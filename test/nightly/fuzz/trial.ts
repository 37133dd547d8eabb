/**
 * Sends inputs to one server, with the state that they need before and the checks after: created
 * events can be read, patches do what the models say, a dry run changes nothing.
 */
import { isDeepStrictEqual } from 'node:util'
import { COLLECTION, GREAT, GREAT_NAME, STANDING } from './generators/events.ts'
import type { FuzzInput } from './input.ts'
import { wrongWith } from './judge.ts'
import { CannotPatch, modelJsonPatch, modelMergePatch } from './models.ts'
import type { Answer, Ask, Target } from './target.ts'

/** Longer bodies are not checked by the models, which are slow. */
const MODELLED_BYTES_MAX = 20_000

const OWN = /\/own-(base-\d)-\d+(?=\?|$)/
const WRITES: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])
const nothing = Buffer.alloc(0)
const jsonHeaders = { 'content-type': 'application/json' }

export interface Shown {
  readonly metadata: {
    readonly name: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly finalizers?: readonly string[]
  }
  readonly note?: string
}

export class Trial {
  readonly #target: Target
  readonly #standing = new Map<string, Shown>()

  constructor(target: Target) {
    this.#target = target
  }

  /** Creates the events that everything is tried on. */
  async begin(): Promise<void> {
    for (const [name, event] of STANDING) {
      await this.#create(event)
      this.#standing.set(name, await this.#get(name))
    }
  }

  /** Runs work while the large event exists, which makes every list long. */
  async withGreat(work: () => Promise<void>): Promise<void> {
    await this.#create(GREAT)
    const before = await this.#get(GREAT_NAME)
    this.#standing.set(GREAT_NAME, before)
    await work()
    if (!isDeepStrictEqual(await this.#get(GREAT_NAME), before)) throw new Error('it was changed')
    this.#standing.delete(GREAT_NAME)
    await this.#remove(GREAT_NAME)
  }

  /** Checks that dry runs have changed nothing. */
  async end(): Promise<readonly string[]> {
    const wrong: string[] = []
    for (const [name, before] of this.#standing) {
      const now = await this.#get(name)
      if (!isDeepStrictEqual(now, before)) wrong.push(`${name} has changed`)
    }
    return wrong
  }

  needsPreparation({ target }: FuzzInput): boolean {
    return OWN.test(target)
  }

  /** Creates what the input needs; nothing for most. */
  async prepare(input: FuzzInput): Promise<void> {
    const base = OWN.exec(input.target)?.[1]
    if (base === undefined) return
    const event = structuredClone(STANDING.get(base)) as { metadata: { name: string } }
    event.metadata.name = nameIn(input)
    await this.#create(event)
  }

  /** What is wrong with the response, and with the state after it. Cleans up. */
  async check(input: FuzzInput, answer: Answer): Promise<readonly string[]> {
    const wrong = [...wrongWith(input, answer), ...this.#target.complaints()]
    if (wrong.length === 0 && answer.headers['content-type'] === 'application/json') {
      wrong.push(...this.#unlikeModel(input, answer))
    }
    if (answer.status === 201 && !isDryRun(input)) wrong.push(...(await this.#unlikeStored(answer)))
    if (OWN.test(input.target)) await this.#remove(nameIn(input))
    return wrong
  }

  /** Whether a created event exists, and cleans it up. */
  async #unlikeStored(answer: Answer): Promise<readonly string[]> {
    if (answer.headers['content-type'] !== 'application/json') return []
    const created = JSON.parse(answer.body.toString())
    if (created.kind !== 'Event') return []
    const stored = await this.#get(created.metadata.name)
    await this.#remove(created.metadata.name)
    return isDeepStrictEqual(stored, created)
      ? []
      : ['the event that is read is not the one created']
  }

  #unlikeModel(input: FuzzInput, answer: Answer): readonly string[] {
    if (input.body.length > MODELLED_BYTES_MAX) return []
    if (!WRITES.has(input.method) || answer.status >= 400) return []
    const shown = JSON.parse(answer.body.toString())
    if (shown.kind !== 'Event') return []
    if (input.method === 'PATCH') return this.#unlikePatched(input, shown)
    return input.kind === 'body' ? unlike(parsed(input), shown) : []
  }

  #unlikePatched(input: FuzzInput, shown: Shown): readonly string[] {
    const name = OWN.exec(input.target)?.[1] ?? nameIn(input)
    const before = this.#standing.get(name)
    const patch = parsed(input)
    if (patch === undefined) return ['a patch that is not JSON was accepted']
    try {
      switch (input.headers['content-type']) {
        case 'application/json-patch+json':
          return unlike(modelJsonPatch(before, patch), shown)
        case 'application/merge-patch+json':
          return unlike(modelMergePatch(before, patch), shown)
        default:
          // Without directives a strategic merge differs in lists alone.
          return input.body.includes('$')
            ? []
            : unlike(modelMergePatch(before, patch), shown, ['labels', 'annotations'])
      }
    } catch (error) {
      if (error instanceof CannotPatch)
        return [`accepted, but the model cannot apply it: ${error.message}`]
      throw error
    }
  }

  async #create(event: unknown): Promise<void> {
    const body = Buffer.from(JSON.stringify(event))
    const { status } = await this.#ask('POST', COLLECTION, body)
    if (status !== 201 && status !== 409) throw new Error(`an event was not created: ${status}`)
  }

  async #get(name: string): Promise<Shown> {
    const { body } = await this.#ask('GET', `${COLLECTION}/${encodeURIComponent(name)}`)
    return JSON.parse(body.toString())
  }

  async #remove(name: string): Promise<void> {
    const path = `${COLLECTION}/${encodeURIComponent(name)}`
    await this.#ask('DELETE', path)
    await this.#target.ask({
      method: 'PATCH',
      target: path,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: Buffer.from('{"metadata":{"finalizers":null}}'),
    })
  }

  #ask(method: string, target: string, body: Buffer = nothing): Promise<Answer> {
    const ask: Ask = { method, target, headers: body === nothing ? {} : jsonHeaders, body }
    return this.#target.ask(ask)
  }
}

function nameIn({ target }: FuzzInput): string {
  const path = target.split('?', 1)[0] ?? ''
  return path.slice(path.lastIndexOf('/') + 1)
}

function isDryRun({ target }: FuzzInput): boolean {
  return new URLSearchParams(target.slice(target.indexOf('?') + 1)).has('dryRun')
}

/** Undefined when it is not JSON. */
function parsed({ body }: FuzzInput): unknown {
  try {
    return JSON.parse(body.toString())
  } catch {
    return undefined
  }
}

type Compared = 'labels' | 'annotations' | 'finalizers'

/** Compares the fields that a client may set freely. */
function unlike(
  expected: unknown,
  shown: Shown,
  members: readonly Compared[] = ['labels', 'annotations', 'finalizers'],
): readonly string[] {
  const { metadata } = expected as Partial<Shown>
  return members
    .filter((member) => {
      const wanted = normal(metadata?.[member])
      return !isDeepStrictEqual(wanted, normal(shown.metadata[member]))
    })
    .map((member) => `${member} differ from the model`)
}

/**
 * Undefined stays undefined; null is an empty text; a lone surrogate becomes the replacement
 * character.
 */
function normal(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value.map(textOf)
  if (typeof value !== 'object' || value === null) return undefined
  const entries = Object.entries(value).map(([name, text]) => [name.toWellFormed(), textOf(text)])
  return entries.length === 0 ? undefined : new Map(entries as [string, string][])
}

function textOf(value: unknown): string {
  return String(value ?? '').toWellFormed()
}
