/** Plays sequences on both servers, and shrinks differences. */
import { Members, type Tree } from '../fuzz/tree.ts'
import type { Answer, Client } from './client.ts'
import {
  type Digest,
  digestDifferences,
  digestOf,
  inOurWords,
  messageOf,
  reasonOf,
} from './digest.ts'
import { explanationOf } from './explanation.ts'
import { askOf, isChange, Memory, type Step } from './step.ts'

/** Attempts to shrink a sequence before it is reported as it is. */
const SHRINK_ATTEMPTS = 80
/** The length of a watch that differed within its usual second. */
const WATCH_SECONDS_LONG = '6'

export interface Difference {
  readonly steps: readonly Step[]
  /** The last step, where the responses differ. */
  readonly ours: Digest
  readonly theirs: Digest
  readonly places: readonly string[]
  /** The kind of the difference, without the values. */
  readonly signature: string
}

export interface Played {
  readonly differences: readonly Difference[]
  /** Known differences that were seen. */
  readonly known: readonly KnownFound[]
}

export interface KnownFound {
  readonly row: string
  readonly signature: string
}

interface Sequence {
  readonly ours: Memory
  readonly theirs: Memory
  /** The steps before this one. */
  readonly before: readonly Step[]
}

export class Player {
  readonly #ours: Client
  readonly #theirs: Client
  readonly #run: string
  #namespaces = 0
  #compared = 0

  constructor(servers: { readonly ours: Client; readonly theirs: Client }) {
    this.#ours = servers.ours
    this.#theirs = servers.theirs
    this.#run = Date.now().toString(36)
  }

  /** The number of responses that were compared. */
  get compared(): number {
    return this.#compared
  }

  /**
   * Uses its own namespace. Ends where only one of the servers has made a change: from there on
   * their states differ.
   */
  async play(steps: readonly Step[]): Promise<Played> {
    const namespace = `d-${this.#run}-${++this.#namespaces}`
    const ours = new Memory(namespace)
    const theirs = new Memory(namespace)
    const differences: Difference[] = []
    const known: KnownFound[] = []
    for (const [index, step] of steps.entries()) {
      const before = steps.slice(0, index)
      let asked = await this.#ask(step, { ours, theirs, before })
      if (step.verb === 'watch' && asked.found !== undefined && asked.found.row === undefined) {
        asked = await this.#ask(longer(step), { ours, theirs, before })
      }
      const { found } = asked
      if (found?.row !== undefined) known.push({ row: found.row, signature: found.signature })
      else if (found !== undefined) differences.push({ ...found, steps: [...before, step] })
      if (isApart(step, asked)) break
    }
    return { differences, known }
  }

  async #ask(step: Step, { ours, theirs, before }: Sequence): Promise<Asked> {
    const [our, their] = await Promise.all([
      this.#ours.ask(askOf(step, ours)),
      this.#theirs.ask(askOf(step, theirs)),
    ])
    this.#compared += 1
    const digest = digestAfter(step, our, ours)
    const other = inOurWords(step, digestAfter(step, their, theirs))
    return { ours: digest, theirs: other, found: compared(step, digest, other, before) }
  }

  /** The same difference with fewer steps, parameters and members, within a number of attempts. */
  async shrink(difference: Difference): Promise<Difference> {
    let best = difference
    let left = SHRINK_ATTEMPTS
    for (let found = true; found && left > 0; ) {
      found = false
      for (const steps of smaller(best.steps)) {
        if (--left < 0) break
        const { differences } = await this.play(steps)
        const same = differences.find(
          ({ signature, steps: shown }) =>
            signature === difference.signature && shown.length === steps.length,
        )
        if (same === undefined) continue
        best = same
        found = true
        break
      }
    }
    return best
  }
}

interface Asked {
  readonly ours: Digest
  readonly theirs: Digest
  readonly found: Compared | undefined
}

interface Compared {
  readonly ours: Digest
  readonly theirs: Digest
  readonly places: readonly string[]
  readonly signature: string
  /** The row of docs/reference/compatibility.md that explains the difference. */
  readonly row: string | undefined
}

/** Undefined when the responses are equal. */
export function compared(
  step: Step,
  ours: Digest,
  theirs: Digest,
  before: readonly Step[] = [],
): Compared | undefined {
  const places = digestDifferences(ours, theirs)
  if (places.length === 0) return undefined
  return {
    ours,
    theirs,
    places,
    signature: signatureOf(step, ours, theirs, places),
    row: explanationOf({ step, before, ours, theirs, places }),
  }
}

/** Rows after which one server lists another state, or has another next page. */
const OTHER_TOKENS: ReadonlySet<string> = new Set([
  'last-page-is-told',
  'handmade-continue-tokens',
  'more-field-labels',
])

/**
 * Whether the two servers may have different stored states from here on, or different continue
 * tokens.
 */
function isApart(step: Step, { ours, theirs, found }: Asked): boolean {
  if (!isChange(step)) return OTHER_TOKENS.has(found?.row ?? '')
  // `collection-delete-stops`: what else is deleted when one event cannot be.
  if (step.verb === 'delete-collection' && ours.status === 409) return true
  if (found === undefined) return false
  // `unacceptable-changes-nothing`: the other server may have applied the write nevertheless.
  if (isDone(ours) !== isDone(theirs) || ours.status === 406) return true
  return isDone(ours) && found.row !== 'collection-delete-status'
}

function digestAfter(step: Step, answer: Answer, memory: Memory): Digest {
  const isWritten = memory.learn(answer, step)
  const { namespace, ownValues } = memory
  return digestOf(step, answer, { namespace, ownValues, isWritten })
}

/**
 * Repeats a watch until both servers have sent everything. Nothing is written to the namespace
 * meanwhile, so a repetition shows the same, with more time on a busy machine.
 */
function longer(step: Step): Step {
  const query = step.query.map(([name, value]): readonly [string, string] =>
    name === 'timeoutSeconds' ? [name, WATCH_SECONDS_LONG] : [name, value],
  )
  return { ...step, query }
}

function isDone({ status }: Digest): boolean {
  return status >= 200 && status < 300
}

function signatureOf(
  { verb }: Step,
  ours: Digest,
  theirs: Digest,
  places: readonly string[],
): string {
  const head = `${verb} ${ours.status}/${theirs.status} ${reasonOf(ours)}/${reasonOf(theirs)}`
  if (messageOf(ours) !== messageOf(theirs)) {
    return `${head} ${shape(messageOf(ours))} | ${shape(messageOf(theirs))}`
  }
  return `${head} ${places
    .slice(0, 2)
    .map((place) => shape(place.replaceAll(/\[\d+\]/g, '[]')))
    .join('; ')}`
}

/** A message without the values in it. */
function shape(message: string): string {
  return message
    .replaceAll(/"(?:\\.|[^"\\])*"/g, '"…"')
    .replace(/(Apply failed with).*/s, '$1')
    .replaceAll(/\d+/g, 'N')
    .slice(0, 100)
}

function* smaller(steps: readonly Step[]): Generator<readonly Step[]> {
  const last = steps.length - 1
  for (let at = last - 1; at >= 0; at--) yield steps.toSpliced(at, 1)
  for (let at = last; at >= 0; at--) {
    const step = steps[at]
    if (step === undefined) continue
    for (const less of smallerSteps(step)) yield steps.with(at, less)
  }
}

function* smallerSteps(step: Step): Generator<Step> {
  for (const at of step.query.keys()) yield { ...step, query: step.query.toSpliced(at, 1) }
  for (const name of Object.keys(step.headers)) {
    if (name === 'content-type') continue
    const { [name]: _, ...headers } = step.headers
    yield { ...step, headers }
  }
  const { body } = step
  if (body?.form === 'json') {
    for (const tree of smallerTrees(body.tree)) yield { ...step, body: { form: 'json', tree } }
  } else if (body?.form === 'text') {
    const lines = body.text.split('\n')
    for (const at of lines.keys()) {
      yield { ...step, body: { form: 'text', text: lines.toSpliced(at, 1).join('\n') } }
    }
  } else if (body?.form === 'event-message') {
    for (const name of Object.keys(body.event)) {
      const { [name]: _, ...event } = body.event
      yield { ...step, body: { form: 'event-message', event } }
    }
  }
}

/** Every tree that has one member or entry less, from the top. */
export function* smallerTrees(tree: Tree): Generator<Tree> {
  if (Array.isArray(tree)) yield* smallerLists(tree)
  else if (tree instanceof Members) yield* smallerObjects(tree)
}

function* smallerLists(list: Tree[]): Generator<Tree> {
  for (const at of list.keys()) yield list.toSpliced(at, 1)
  for (const [at, entry] of list.entries()) {
    for (const less of smallerTrees(entry)) yield list.with(at, less)
  }
}

function* smallerObjects({ entries }: Members): Generator<Tree> {
  for (const at of entries.keys()) yield new Members(entries.toSpliced(at, 1))
  for (const [at, [name, value]] of entries.entries()) {
    for (const less of smallerTrees(value)) yield new Members(entries.with(at, [name, less]))
  }
}
