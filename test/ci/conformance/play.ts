import { isObject, type Json, memberOf } from '../../../src/lib/json.ts'
import { type Answer, framesIn, type Outgoing } from './client.ts'
import { judge } from './compare.ts'
import type { Recording, Step } from './recording.ts'

export interface Result {
  readonly index: number
  readonly step: Step
  /** Undefined when there was none. */
  readonly answer?: Answer
  /** The differences; empty when there are none. */
  readonly wrong: readonly string[]
}

export interface Player {
  readonly client: { send(outgoing: Outgoing): Promise<Answer> }
  /** The token of a caller with all permissions. */
  readonly token: string
  /** Makes the namespaces of this run unique. */
  readonly run: string
}

/** The recordings of protobuf contain the namespace, which is recognised by its beginning. */
export function namespaceOf({ suite }: Recording, { run }: Pick<Player, 'run'>): string {
  return `c-${suite}-${run}`
}

/** Plays a suite from its first step to its last, in its own namespace. */
export async function play(recording: Recording, player: Player): Promise<readonly Result[]> {
  const names = new Map([['ns', namespaceOf(recording, player)]])
  const results: Result[] = []
  for (const group of inGroups(recording.steps)) {
    const from = results.length
    results.push(
      ...(await Promise.all(
        group.map((step, offset) => playStep({ player, names, step, index: from + offset })),
      )),
    )
  }
  return results
}

/** Reads that no later step depends on can be sent together; everything else keeps its order. */
function inGroups(steps: readonly Step[]): readonly (readonly Step[])[] {
  const groups: Step[][] = []
  let together = false
  for (const step of steps) {
    const isRead = (step.method === 'GET' || step.method === 'HEAD') && step.save === undefined
    if (isRead && together) groups.at(-1)?.push(step)
    else groups.push([step])
    together = isRead
  }
  return groups
}

interface Turn {
  readonly player: Player
  readonly names: Map<string, string>
  readonly step: Step
  readonly index: number
}

async function playStep({ player, names, step, index }: Turn): Promise<Result> {
  try {
    const answer = await player.client.send(outgoing(step, names, player.token))
    save(step, answer, names)
    const place = { namespace: names.get('ns') ?? '' }
    return { index, step, answer, wrong: judge(step, answer, place) }
  } catch (error) {
    return {
      index,
      step,
      wrong: [`no response: ${error instanceof Error ? error.message : error}`],
    }
  }
}

/** The request of a step with its placeholders filled in. */
function outgoing(step: Step, names: ReadonlyMap<string, string>, token: string): Outgoing {
  const { body, raw, answer, ours } = step
  const authorization = step.authorization ?? (token === '' ? '' : `Bearer ${token}`)
  const headers = Object.fromEntries(
    Object.entries({
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(authorization !== '' && { authorization }),
      ...step.headers,
    }).map(([name, value]) => [name, fill(value, names)]),
  )
  const { frames, base64, ends } = ours?.answer ?? answer
  const count =
    base64 === undefined ? frames?.length : framesIn(Buffer.from(base64, 'base64'), true)
  return {
    method: step.method,
    path: fill(step.path, names),
    headers,
    payload: raw !== undefined || body !== undefined ? payloadOf(raw, body, names) : undefined,
    framesExpected: ends === true ? undefined : count,
    ...(step.watchMs !== undefined && { watchMs: step.watchMs }),
  }
}

function payloadOf(
  raw: string | undefined,
  body: Json | undefined,
  names: ReadonlyMap<string, string>,
): string {
  return fill(raw ?? JSON.stringify(body), names)
}

/** `@{name}` is a saved value, `@{x*N}` that many letters, `@{ops*N}` a JSON patch that long. */
function fill(text: string, names: ReadonlyMap<string, string>): string {
  return text.replace(/@\{(\w+)(?:\*(\d+))?\}/g, (_, name: string, count?: string) => {
    if (count === undefined) return names.get(name) ?? ''
    if (name === 'x') return 'x'.repeat(Number(count))
    const operation = { op: 'test', path: '/reason', value: 'Scheduled' }
    return JSON.stringify(Array.from({ length: Number(count) }, () => operation))
  })
}

function save(step: Step, answer: Answer, names: Map<string, string>): void {
  for (const [name, path] of Object.entries(step.save ?? {})) {
    let value: Json | undefined = parsed(answer)
    for (const member of path.split('.')) {
      value = isObject(value) ? memberOf(value, member) : undefined
    }
    names.set(name, typeof value === 'string' ? value : '')
  }
}

function parsed(answer: Answer): Json | undefined {
  try {
    return JSON.parse(answer.body.toString('utf8'))
  } catch {
    return undefined
  }
}
