import type { AddressInfo } from 'node:net'
import type { ProxySettings } from '../../src/http/connections/proxied-connections.ts'
import type { Handler, Request, Response } from '../../src/http/exchange.ts'
import type { HttpLimits } from '../../src/http/limits.ts'
import { DEFAULT_LIMITS } from '../../src/http/limits.ts'
import { Listener } from '../../src/http/listener.ts'
import type { ServingCertificate, TlsSettings } from '../../src/http/tls/secure-context.ts'
import { makeSelfSigned } from '../../src/http/tls/self-signed.ts'
import type { MemoryLedger } from '../../src/lib/client-memory/ledger.ts'
import { type Clock, monotonicClock } from '../../src/lib/clock.ts'

/** A listener on a port that the kernel chose, closed at the end of the scope. */
export interface TestListener extends AsyncDisposable {
  readonly listener: Listener
  readonly port: number
  /** The certificate that clients trust. */
  readonly ca: string
  /** Everything reported through `onBug`, in order. */
  readonly bugs: readonly unknown[]
}

export interface TestListenerOptions {
  readonly limits?: Partial<HttpLimits>
  readonly tls?: Partial<TlsSettings>
  readonly lateResponse?: (request: Request) => Response
  readonly onHandshakeError?: (code: string) => void
  readonly proxies?: ProxySettings
  readonly ledger?: MemoryLedger
  readonly clock?: Clock
}

export async function startListener(
  handler: Handler,
  options: TestListenerOptions = {},
): Promise<TestListener> {
  const certificate = options.tls?.certificate ?? (await servingCertificate())
  return start(handler, options, { minVersion: 'TLSv1.2', ...options.tls, certificate })
}

/** The same without TLS, which means HTTP/1.1 only. */
export function startPlainListener(
  handler: Handler,
  options: Omit<TestListenerOptions, 'tls'> = {},
): Promise<TestListener> {
  return start(handler, options, undefined)
}

/** Made once per process: generating a key takes longer than most of the tests that need one. */
export function servingCertificate(): Promise<ServingCertificate> {
  shared ??= makeSelfSigned(['localhost', '127.0.0.1'])
  return shared
}

let shared: Promise<ServingCertificate> | undefined

async function start(
  handler: Handler,
  options: TestListenerOptions,
  tls: TlsSettings | undefined,
): Promise<TestListener> {
  const bugs: unknown[] = []
  const listener = new Listener({
    host: '127.0.0.1',
    port: 0,
    tls,
    limits: { ...DEFAULT_LIMITS, ...options.limits },
    clock: options.clock ?? monotonicClock,
    handler,
    lateResponse: options.lateResponse ?? (() => text(504, 'too late')),
    onBug: (error) => bugs.push(error),
    onHandshakeError: options.onHandshakeError,
    ledger: options.ledger,
    proxies: options.proxies,
  })
  const { port }: AddressInfo = await listener.listen()
  return {
    listener,
    port,
    ca: tls?.certificate.cert ?? '',
    bugs,
    [Symbol.asyncDispose]: () => listener.close(),
  }
}

/** A plain text response. */
export function text(status: number, body: string): Response {
  return { status, headers: { 'content-type': 'text/plain' }, body }
}
