/** What all attacks have in common: who sends them, how large they are, and connections kept open. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Tokens of the users of a campaign; undefined for clients that have not shown who they are. */
export const SENDERS = {
  unauthenticated: undefined,
  'no rights': 'tok-none',
  reader: 'tok-reader',
  editor: 'tok-editor',
} as const
export type Sender = keyof typeof SENDERS

/** Events of the attacked namespace make a list of about 1 MiB. */
export const LIST = '/apis/events.k8s.io/v1/namespaces/a/events'
/** Attackers come from elsewhere than bystanders, which come from 127.0.0.1; one as a listed proxy. */
export const ADDRESS = '127.0.0.3'
/** To be spread into options of TLS, whose types do not know that they are those of TCP too. */
export const FROM_ADDRESS: object = { localAddress: ADDRESS }
export const PROXY_ADDRESS = '127.0.0.2'

export interface Target {
  readonly port: number
  /** Resolves the size of an attack: 1 is full size. */
  readonly scaled: (full: number) => number
}

export interface Attack {
  readonly name: string
  readonly sender: Sender
  /** Resolves when it has been mounted; it goes on until its process ends. */
  readonly run: (target: Target) => Promise<Mounted>
  /** What the server is started with besides the usual flags. */
  readonly flags?: readonly string[]
  readonly etcdArgs?: readonly string[]
  /** The longest turn of the event loop that is allowed, in ms. */
  readonly turnMsMax?: number
}

/** What the attacker tells of itself, so that an attack that never took place is noticed. */
export interface Mounted {
  readonly opened: number
}

interface Connection {
  close(): void
  readonly isClosed: boolean
}

export interface FleetOptions {
  readonly size: number
  /** How many are opened side by side, and the time between such groups. */
  readonly group: number
  readonly pauseMs: number
}

/**
 * Opens connections group by group and, for as long as the process lives, opens anew those that the
 * server cuts. Resolves after the first time through.
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
            // Refused or cut on the way, which is for the server to do.
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

/** Goes on with it until the process ends. */
export async function forever(step: () => Promise<void>): Promise<never> {
  for (;;) {
    await step()
    await sleep(50)
  }
}
