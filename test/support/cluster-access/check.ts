/** Sends the requests of the matrix, and compares the responses with what the model expects. */
import assert from 'node:assert/strict'
import { type ApiAnswer, EventClient } from '../event-client.ts'
import type { Tidings } from '../tidings.ts'
import type { MatrixRequest } from './matrix.ts'
import { ALPHA, BRAVO, EVENTS, GHOST, HOME, kindGroup, type SeededEvent, USERS } from './model.ts'

/** Connections of all users to one server. */
export class Clients implements Disposable {
  readonly #clients: ReadonlyMap<string, EventClient>

  static async open({ port, ca }: Tidings): Promise<Clients> {
    const clients = new Map<string, EventClient>()
    for (const user of USERS.keys()) {
      clients.set(user, await EventClient.open({ port, ca, token: user }))
    }
    return new Clients(clients)
  }

  private constructor(clients: ReadonlyMap<string, EventClient>) {
    this.#clients = clients
  }

  of(user: string): EventClient {
    const client = this.#clients.get(user)
    assert.ok(client, user)
    return client
  }

  send({ sender, method, path, headers, body }: MatrixRequest): Promise<ApiAnswer> {
    const { as } = sender
    const acting = {
      ...(as === undefined ? {} : { 'impersonate-user': as.user }),
      ...(as?.group === undefined ? {} : { 'impersonate-group': as.group }),
    }
    return this.of(sender.user).request({
      method,
      path,
      headers: { ...headers, ...acting },
      ...(body === undefined ? {} : { body }),
    })
  }

  [Symbol.dispose](): void {
    for (const client of this.#clients.values()) client.session.destroy()
  }
}

/** The uids of the seeded events, by marker: they occur in no request, so each is a leak. */
export type Uids = ReadonlyMap<string, string>

/** What is wrong with a response; undefined when it is as expected. */
function mistakeIn(request: MatrixRequest, answer: ApiAnswer, uids: Uids): string | undefined {
  const { status } = answer
  const { isAllowed, review } = request.expected
  const body = answer.body.toString('latin1')
  const text = `${JSON.stringify(answer.headers)}\n${body}`
  const shownWrongly = leakIn(request, text, uids)
  if (shownWrongly !== undefined) return shownWrongly
  if (isAllowed === false && status !== 403) return `status ${status} instead of 403`
  if (isAllowed === true && (status === 401 || status === 403)) return `status ${status}: ${body}`
  if (isIncomplete(request, text, uids)) return `lacks events, status ${status}`
  if (review === undefined || status === 403) return undefined
  return JSON.parse(body).status.allowed === review ? undefined : `review: not ${review}`
}

function leakIn({ path, expected }: MatrixRequest, text: string, uids: Uids): string | undefined {
  const { events, kindsOf } = expected
  const leaked = EVENTS.filter((event) => !events.includes(event) && has(text, event, uids))
  if (leaked.length > 0) return `shows ${leaked.map(({ cluster }) => cluster).join(', ')}`
  const sent = sentText(path)
  const kinds = [HOME, ALPHA, BRAVO].filter((cluster) => !kindsOf.includes(cluster)).map(kindGroup)
  const named = [ALPHA, BRAVO, GHOST].filter(
    (name) => !events.some(({ cluster }) => cluster === name) && !kindsOf.includes(name),
  )
  const name = [...kinds, ...named].find((one) => text.includes(one) && !sent.includes(one))
  return name === undefined ? undefined : `names ${name}`
}

/** An error may quote what the client has sent, also the content of a continue token. */
function sentText(path: string): string {
  const token = /continue=([^&]*)/.exec(path)?.[1] ?? ''
  return path + Buffer.from(token, 'base64url').toString()
}

function isIncomplete({ expected }: MatrixRequest, text: string, uids: Uids): boolean {
  return expected.hasAll && expected.events.some((event) => !has(text, event, uids))
}

function has(text: string, { marker }: SeededEvent, uids: Uids): boolean {
  return text.includes(marker) || text.includes(uids.get(marker) ?? marker)
}

function shown({ sender, method, path, headers }: MatrixRequest): string {
  return `${JSON.stringify(sender)} ${method} ${path} ${headers['accept'] ?? ''}`
}

export interface Outcome {
  readonly mistakes: string[]
  count: number
  allowed: number
  denied: number
}

/** Sends all requests, or stops after the first mistakes. */
export async function run(
  clients: Clients,
  requests: Iterable<MatrixRequest>,
  { uids, atOnce, mistakesMax }: { uids: Uids; atOnce: number; mistakesMax: number },
): Promise<Outcome> {
  const outcome: Outcome = { mistakes: [], count: 0, allowed: 0, denied: 0 }
  const rest = requests[Symbol.iterator]()
  const worker = async (): Promise<void> => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) {
      if (outcome.mistakes.length >= mistakesMax) return
      const request = next.value
      const mistake = mistakeIn(request, await answerTo(clients, request, uids), uids)
      if (mistake !== undefined) outcome.mistakes.push(`${shown(request)}: ${mistake}`)
      outcome.count += 1
      const { isAllowed } = request.expected
      if (isAllowed !== undefined) outcome[isAllowed ? 'allowed' : 'denied'] += 1
    }
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return outcome
}

/** A watch is repeated: on a busy machine a second may be too short for its events. */
async function answerTo(clients: Clients, request: MatrixRequest, uids: Uids): Promise<ApiAnswer> {
  const answer = await clients.send(request)
  const path = request.path.replace('timeoutSeconds=1', 'timeoutSeconds=5')
  const isLate = path !== request.path && isIncomplete(request, String(answer.body), uids)
  return isLate ? clients.send({ ...request, path }) : answer
}
