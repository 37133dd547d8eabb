import { EventEmitter } from 'node:events'
import { CallFailure, type CallFailureDetails } from '../grpc/call-failure.ts'
import type { Clock } from '../lib/clock.ts'
import { Member, Members } from './members.ts'

/** A stream that delivers what the test pushes. */
export class FakeStream<Message> extends EventEmitter {
  readonly messages: Message[] = []
  readonly requests: Buffer[] = []
  bytesReceived = 0
  isCancelled = false

  get readableLength(): number {
    return this.messages.length
  }

  read(): Message | null {
    return this.messages.shift() ?? null
  }

  write(message: Buffer): void {
    this.requests.push(message)
  }

  end(message: Buffer): void {
    this.requests.push(message)
  }

  cancel(): void {
    this.isCancelled = true
  }

  deliver(message: Message): void {
    this.messages.push(message)
    this.bytesReceived += 100
    this.emit('readable')
  }

  fail(code: number): void {
    const details: CallFailureDetails = {
      code,
      message: 'x',
      origin: 'server',
      mayHaveBeenApplied: false,
    }
    this.emit('error', new CallFailure(details))
  }
}

export interface FakeMembers<Stream> {
  readonly members: Members
  /** Those that were opened so far. */
  readonly streams: readonly Stream[]
  readonly clock: Clock & { ms: number }
  pings(): number
  /** The number of the connection. */
  connection(): number
  reconnect(): void
}

/** One connected member. */
export function fakeMembers<Stream>(open: () => Stream): FakeMembers<Stream> {
  const streams: Stream[] = []
  const session = {
    isGoingAway: false,
    duplex: () => {
      const stream = open()
      streams.push(stream)
      return stream
    },
  }
  let current = { session, number: 1 }
  let pings = 0
  const connection = {
    state: 'ready',
    get current() {
      return current
    },
    error: () => undefined,
    ping: () => pings++,
    renew: () => {},
    close: () => {},
  }
  const clock = { ms: 0, now: () => clock.ms }
  const both = connection as unknown as ConstructorParameters<typeof Member>[0]['calls']
  const members = new Members(() => [new Member({ name: 'm', calls: both, streams: both, clock })])
  return {
    members,
    streams,
    clock,
    pings: () => pings,
    connection: () => current.number,
    reconnect: () => {
      current = { session, number: current.number + 1 }
    },
  }
}

/** Runs everything that waits for promises only. */
export async function settle(): Promise<void> {
  for (let tick = 0; tick < 50; tick++) await Promise.resolve()
}
