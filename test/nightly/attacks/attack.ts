/** Shared by all attacks: senders, sizes, and connections that are kept open. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Tokens of the users of a campaign; undefined for unauthenticated clients. */
export const SENDERS = {
  unauthenticated: undefined,
  'no rights': 'tok-none',
  reader: 'tok-reader',
  editor: 'tok-editor',
} as const
export type Sender = keyof typeof SENDERS
/** How many users of each kind an attack may have. */
export const USERS_MAX = 8

/** The tokens of several users with the same permissions. */
export function tokensOf(sender: Sender, users: number): readonly string[] {
  return Array.from({ length: users }, (_, n) => `${SENDERS[sender] ?? ''}-${n}`)
}

/** The events of the attacked namespace make a list of about 1 MiB. */
export const LIST = '/apis/events.k8s.io/v1/namespaces/a/events'
/**
 * Attackers connect from another address than bystanders, which use 127.0.0.1; one attacks as a
 * listed proxy.
 */
export const ADDRESS = '127.0.0.3'
/** Spread into TLS options, whose type lacks the options of TCP. */
export const FROM_ADDRESS: object = { localAddress: ADDRESS }
export const PROXY_ADDRESS = '127.0.0.2'

export interface Target {
  readonly port: number
  /** Scales the size of an attack: 1 is full size. */
  readonly scaled: (full: number) => number
}

export interface Attack {
  readonly name: string
  readonly sender: Sender
  /** Resolves when the attack has started; it continues until its process ends. */
  readonly run: (target: Target) => Promise<Mounted>
  /** Flags of the server besides the usual ones. */
  readonly flags?: readonly string[]
  readonly etcdArgs?: readonly string[]
  /** The longest event-loop tick that is allowed, in ms. */
  readonly tickMsMax?: number
}

/** The report of the attacker, so that an attack that never started is noticed. */
export interface Mounted {
  readonly opened: number
}

interface Connection {
  close(): void
  readonly isClosed: boolean
}

export interface FleetOptions {
  readonly size: number
  /** How many are opened concurrently, and the time between such groups. */
  readonly group: number
  readonly pauseMs: number
}

/**
 * Opens connections group by group and, for as long as the process lives, reopens those that the
 * server cuts. Resolves after the first round.
 */
export async function fleet(
  { size, group, pauseMs }: FleetOptions,
  open: (index: number) => Promise<Connection>,
): Promise<Mounted> {
  const connections: (Connection | undefined)[] = Array.from({ length: size }, () => undefined)
  let opened = 0
  const fill = async (): Promise<void> => {
    for (let start = 0; start < size; start += group) {
      const indexes = Array.from({ length: Math.min(group, size - start) }, (_, n) => start + n)
      const missing = indexes.filter((index) => connections[index]?.isClosed !== false)
      if (missing.length === 0) continue
      await Promise.all(
        missing.map(async (index) => {
          try {
            connections[index] = await open(index)
            opened += 1
          } catch {
            // Refused or cut on the way, which the server may do.
          }
        }),
      )
      await sleep(pauseMs)
    }
  }
  await fill()
  void forever(fill)
  return { opened }
}

/** Repeats it until the process ends. */
export async function forever(step: () => Promise<void>): Promise<never> {
  for (;;) {
    await step()
    await sleep(50)
  }
}
