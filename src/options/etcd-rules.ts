import { type Rule, together } from './flag.ts'
import { type Options, serverFlags } from './options.ts'

/** What every command needs that reads or writes etcd. */
export type EtcdOptions = Pick<
  Options,
  'etcdServers' | 'etcdCaFile' | 'etcdCertFile' | 'etcdKeyFile'
>

/** `or` is a way to do without the flag, if there is one. */
export function etcdRules(or = ''): readonly Rule<EtcdOptions>[] {
  return [
    {
      about: ['etcdServers'],
      check: ({ etcdServers }) =>
        etcdServers.length > 0
          ? undefined
          : `--etcd-servers is required: write --etcd-servers=http://127.0.0.1:2379${or}`,
    },
    {
      about: ['etcdServers'],
      check: ({ etcdServers }) => {
        const schemes = new Set(etcdServers.map(schemeOf))
        return schemes.size <= 1
          ? undefined
          : `--etcd-servers mixes ${[...schemes].join(' and ')}: use one scheme for all of them`
      },
    },
    together(serverFlags, 'etcdCertFile', 'etcdKeyFile'),
    needsHttps('etcdCaFile'),
    needsHttps('etcdCertFile'),
  ]
}

/** Rejects a file that would have no effect on a connection without TLS. */
function needsHttps(option: 'etcdCaFile' | 'etcdCertFile'): Rule<EtcdOptions> {
  return {
    about: [option, 'etcdServers'],
    check: (options) => {
      const [first] = options.etcdServers
      if (options[option] === undefined || first === undefined) return undefined
      if (options.etcdServers.some((url) => schemeOf(url) === 'https')) return undefined
      return `--${serverFlags[option].name} has no effect on ${schemeOf(first)}: write https addresses in --etcd-servers, or leave it out`
    },
  }
}

function schemeOf(url: string): string {
  return url.slice(0, url.indexOf(':'))
}
