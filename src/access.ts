/** Everything that decides who comes in, put together from the options. */
import { alwaysAllow } from './gate/always-allow.ts'
import { bearerTokens, FileTokens, type TokenUsers } from './gate/bearer-token.ts'
import { Gate } from './gate/gate.ts'
import type { Log } from './lib/log.ts'
import type { Options } from './options/options.ts'

export interface Access {
  readonly gate: Gate
  /** Stops looking at files. */
  stop(): void
}

/** Rejects, naming the flag, when a file cannot be used. */
export async function openAccess(options: Options, log: Log): Promise<Access> {
  const followers: { stop(): void }[] = []
  const tokens: TokenUsers[] = []
  if (options.tokenAuthFile !== undefined) {
    const file = await about('--token-auth-file', FileTokens.open(options.tokenAuthFile, log))
    followers.push(file)
    tokens.push(file)
  }
  return {
    gate: new Gate({
      authenticators: [bearerTokens(tokens)],
      authorizers: [alwaysAllow],
      allowsAnonymous: false,
    }),
    stop: () => {
      for (const follower of followers) follower.stop()
    },
  }
}

/** Names the flags to look at when something the operator set does not work. */
export async function about<T>(flags: string, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (cause) {
    throw new Error(`${flags}: it does not work as given`, { cause })
  }
}
