import type { Peer, Request } from '../http/exchange.ts'

/** Returns a GET of `/` from another host, with these changes. */
export function makeRequest({
  peer,
  ...change
}: Partial<Omit<Request, 'peer'>> & { readonly peer?: Partial<Peer> } = {}): Request {
  return {
    method: 'GET',
    path: '/',
    query: new URLSearchParams(),
    headers: {},
    peer: { address: '', isLoopback: false, clientCertificate: () => undefined, ...peer },
    signal: new AbortController().signal,
    body: async () => Buffer.alloc(0),
    ...change,
  }
}
