import type { AddressInfo } from 'node:net'
import { Registry } from '@prometheus-io/client'
import { about } from './about.ts'
import { openAccess } from './access.ts'
import {
  endedWatchCounter,
  handshakeErrorCounter,
  proxyRefusalCounter,
  refusalCounter,
} from './access-metrics.ts'
import { type Admission, openAdmission } from './admission.ts'
import { coreGroup, type EventGroup, eventsGroup } from './api/event-groups.ts'
import { StatusError } from './api/status.ts'
import { type Audit, openAudit } from './audit.ts'
import { buildInfo, showBuild } from './build-info.ts'
import { type CertificatesInUse, showCertificates } from './certificate-metrics.ts'
import { type ClientMemory, openClientMemory } from './client-memory.ts'
import { KeptEntries } from './codec/kept-entries.ts'
import { eventsOpenApi, reviewsOpenApi } from './codec/openapi-groups.ts'
import { discoveryService } from './endpoints/discovery.ts'
import { eventsService, eventsServiceName } from './endpoints/events-service.ts'
import { openApiPaths, openApiService } from './endpoints/openapi.ts'
import { SELF_REVIEWS, selfReviewGroups, selfReviewsService } from './endpoints/self-reviews.ts'
import { lateResponse, serve } from './endpoints/serve.ts'
import { metricsService, versionService } from './endpoints/server-info.ts'
import { Services } from './endpoints/services.ts'
import { Engine } from './engine.ts'
import { watchKept } from './engine-metrics.ts'
import { type FileLooks, showFiles } from './file-metrics.ts'
import { warnOfOpenFiles } from './file-modes.ts'
import { AccessChecks } from './gate/access-checks.ts'
import type { Gate } from './gate/gate.ts'
import { RefusalLog } from './gate/refusal.ts'
import {
  conditionCheck,
  datastoreCheck,
  datastoreClientCheck,
  followedBy,
  logCheck,
  ping,
} from './health/checks.ts'
import { healthPaths } from './health/handler.ts'
import { HealthMetrics } from './health/metrics.ts'
import { type HealthCheck, Probe, withGrace } from './health/probe.ts'
import type { CertificatePaths } from './http/certificate-files.ts'
import { followCertificate, loadCertificate } from './http/certificate-files.ts'
import type { Handler } from './http/exchange.ts'
import { DEFAULT_LIMITS } from './http/limits.ts'
import type { ServingCertificate, TlsSettings } from './http/listener.ts'
import { addressText, Listener } from './http/listener.ts'
import type { ProxySettings } from './http/proxied-connections.ts'
import { type Clock, monotonicClock } from './lib/clock.ts'
import type { Log } from './lib/log.ts'
import { Lifecycle } from './lifecycle.ts'
import type { Options } from './options/options.ts'
import { showProcess } from './process-metrics.ts'
import { removalTurns } from './registry/event-remover.ts'
import { certificatePaths } from './serving-certificate.ts'
import { Startup } from './startup.ts'

const LOOPBACK = '127.0.0.1'
const METRICS_PATH = '/metrics'
const SLIS_PATH = '/metrics/slis'
const OPEN_PATHS = ['/healthz', '/livez', '/readyz', '/version', METRICS_PATH, SLIS_PATH]

/** Where a server can be reached, once it listens. */
export interface Addresses {
  readonly secure: AddressInfo
  readonly insecure: AddressInfo | undefined
  /** The certificate it shows; a client that trusts this file trusts the server. */
  readonly certFile: string
}

/**
 * One replica: builds every room, wires them by handing each what it needs, and starts and stops
 * them in order. Replicas share nothing but etcd.
 */
export class Server {
  readonly #options: Options
  readonly #log: Log
  readonly #clock: Clock = monotonicClock
  readonly #startedAt: number = this.#clock.now()
  readonly #lifecycle: Lifecycle
  readonly #metrics = new Registry()
  readonly #looks: FileLooks
  readonly #engine: Engine
  readonly #startup: Startup
  readonly #services: Services
  /** The same events under two names. */
  readonly #groups: readonly EventGroup[]
  readonly #healthMetrics = new HealthMetrics()
  readonly #listeners: Listener[] = []
  /** What looks at files for as long as we run. */
  readonly #followers: { stop(): void }[] = []
  readonly #accessChecks: AccessChecks
  #gate: Gate | undefined
  #audit: Audit | undefined
  #limits: Admission['limits'] | undefined
  #eventLimits: Admission['eventLimits'] | undefined
  readonly #clientMemory: ClientMemory
  #onFatal: (error: unknown) => void = () => {}

  constructor(options: Options, log: Log, writer: { lastFlushedAt(): number }) {
    this.#options = options
    this.#log = log
    this.#lifecycle = new Lifecycle(log)
    this.#looks = showFiles(this.#metrics)
    this.#engine = new Engine(options, log, this.#metrics, this.#looks)
    this.#accessChecks = new AccessChecks({
      log: log.child({ logger: 'gate' }),
      onEnded: endedWatchCounter(this.#metrics),
    })
    this.#followers.push(this.#accessChecks)
    this.#clientMemory = openClientMemory(options, this.#metrics, () =>
      this.#listeners.reduce((sum, { waitingCount }) => sum + waitingCount, 0),
    )
    this.#startup = new Startup(
      [
        {
          name: 'generic-apiserver-start-informers',
          run: () => this.#openEngine(),
        },
        // Done before the first request can come; shown because people look for it.
        ...(options.authorizationModes.includes('RBAC')
          ? [{ name: 'rbac/bootstrap-roles', run: async () => {} }]
          : []),
        { name: 'apiservice-registration-controller', run: async () => this.#installServices() },
      ],
      log,
    )
    this.#groups = [eventsGroup(options.eventsGroup), coreGroup]
    this.#services = new Services([
      'health',
      'version',
      METRICS_PATH,
      SLIS_PATH,
      'discovery',
      SELF_REVIEWS,
      'openapi',
      ...this.#groups.map(eventsServiceName),
    ])
    this.#services.install({
      name: 'health',
      isOpenToHost: true,
      isOpenToHostUsers: true,
      find: healthPaths({
        probes: this.#probes(writer),
        metrics: this.#healthMetrics,
        log: log.child({ logger: 'health' }),
        clock: this.#clock,
      }),
    })
  }

  /**
   * Listens, then starts up in the background: probes are answered from the first moment.
   * `onFatal` hears of what only another start can mend.
   */
  async start(onFatal: (error: unknown) => void): Promise<Addresses> {
    const { bindAddress, securePort, insecurePort } = this.#options
    const paths = await certificatePaths(this.#options, this.#log)
    const certificate = await about(
      '--tls-cert-file, --tls-private-key-file',
      loadCertificate(paths),
    )
    const looks = this.#looks
    const access = await openAccess(this.#options, this.#log.child({ logger: 'gate' }), looks)
    this.#followers.push(access)
    access.onChange(this.#accessChecks.changed)
    const { gate, clientAuthorities } = access
    this.#gate = gate
    const tls: TlsSettings = {
      certificate,
      minVersion: this.#options.tlsMinVersion === 'VersionTLS13' ? 'TLSv1.3' : 'TLSv1.2',
      ...(clientAuthorities === undefined ? {} : { clientCa: clientAuthorities.pem }),
    }
    this.#services.install(
      selfReviewsService({
        decide: (user, attributes) => gate.decide(user, attributes),
        rulesFor: access.rulesFor,
        wallTime: Date.now,
      }),
    )
    const admission = await openAdmission(
      this.#options,
      this.#metrics,
      this.#log.child({ logger: 'gate' }),
      { looks, room: () => this.#engine.room, ledger: this.#clientMemory.ledger },
    )
    this.#followers.push(admission)
    this.#limits = admission.limits
    this.#eventLimits = admission.eventLimits
    this.#audit = await openAudit(
      this.#options,
      this.#log.child({ logger: 'audit' }),
      this.#metrics,
      looks,
    )
    const handler = this.#handler(gate, admission)
    const secureListener = this.#listener(handler, bindAddress, securePort, tls)
    clientAuthorities?.onChange((pem) => secureListener.renewClientCa(pem))
    const secure = await about('--bind-address, --secure-port', secureListener.listen())
    this.#log.info('Serving securely', { address: addressText(secure) })
    const insecure =
      insecurePort === 0
        ? undefined
        : await about('--insecure-port', this.#listener(handler, LOOPBACK, insecurePort).listen())
    if (insecure !== undefined) {
      this.#log.info('Serving plain HTTP to this host', { address: addressText(insecure) })
    }

    const served = this.#followCertificate(paths, certificate, secureListener)
    showCertificates(this.#metrics, () => [
      served,
      ...access.certificates,
      ...this.#engine.certificates,
    ])
    void warnOfOpenFiles(this.#options, this.#log, process.getuid?.() ?? 0)
    this.#onFatal = onFatal
    this.#startup.run().catch(onFatal)
    return { secure, insecure, certFile: paths.certFile }
  }

  /** Serves what the files say from now on; returns what is served. */
  #followCertificate(
    paths: CertificatePaths,
    certificate: ServingCertificate,
    listener: Listener,
  ): CertificatesInUse {
    const flag = this.#options.tlsCertFile === undefined ? '--cert-dir' : '--tls-cert-file'
    let inUse = certificate
    const follower = followCertificate(paths, certificate, {
      onChange: (renewed) => {
        listener.renewCertificate(renewed)
        inUse = renewed
        this.#log.info('Serving certificate reloaded', { certFile: paths.certFile })
      },
      onProblem: (err) => this.#log.warn('Serving certificate not reloaded', { err }),
      onMended: () => this.#log.info('Serving certificate in use again, as it was'),
      onLook: this.#looks(flag),
    })
    this.#followers.push(follower)
    return { flag, pem: () => inUse.cert }
  }

  /** Goes through the shutdown of lifecycle.ts; resolves when nothing is left. */
  async stop(): Promise<void> {
    const { shutdownDelayMs, requestTimeoutMs, shutdownSendRetryAfter } = this.#options
    await this.#lifecycle.stop(this.#listeners, {
      delayMs: shutdownDelayMs,
      requestTimeoutMs,
      sendRetryAfter: shutdownSendRetryAfter,
      onLastRequest: () => this.#limits?.release(),
    })
    for (const follower of this.#followers) follower.stop()
    await this.#audit?.close()
    await this.#engine.close()
  }

  /** The checks of each endpoint, in the order they are reported. */
  #probes(writer: { lastFlushedAt(): number }): readonly Probe[] {
    const clock = this.#clock
    const first = [ping, logCheck(writer, clock)]
    const answers = datastoreCheck(() => this.#engine.ask(), clock)
    const isClientAlive = datastoreClientCheck(() => this.#engine.overdueMs())
    // The answer is cached; whether memory is of the same history is asked each time.
    const answersAndFollowed = followedBy(answers, () => this.#engine.followsHistory())
    const informerSync = conditionCheck(
      'informer-sync',
      () => this.#engine.unsynced === undefined,
      () => this.#engine.unsynced ?? '',
    )
    const startup: readonly HealthCheck[] = [
      ...this.#startup.checks(),
      conditionCheck(
        'autoregister-completion',
        () => this.#services.missing().length === 0,
        () => `missing APIService: [${this.#services.missing().join(' ')}]`,
      ),
    ]
    const shutdown = conditionCheck(
      'shutdown',
      () => !this.#lifecycle.shutdownInitiated.isOpen,
      () => 'process is shutting down',
    )
    const grace = { graceMs: this.#options.livezGracePeriodMs, startedAt: this.#startedAt, clock }
    const gracefulStartup = startup.map((check) => withGrace(check, grace))
    return [
      new Probe('healthz', [...first, answers, ...startup]),
      new Probe('livez', [...first, isClientAlive, ...gracefulStartup]),
      new Probe('readyz', [...first, answersAndFollowed, informerSync, ...startup, shutdown]),
    ]
  }

  /** Events are served as soon as there is an engine to ask, which may itself be waiting for etcd. */
  async #openEngine(): Promise<void> {
    await this.#engine.open((error) => this.#onFatal(error))
    const { storage } = this.#engine
    const eventLimits = this.#eventLimits
    const servedVersions = this.#groups.map(({ apiVersion }) => apiVersion)
    const kept = new KeptEntries()
    watchKept(kept, this.#metrics)
    const shared = { storage, eventLimits, servedVersions, removalTurns: removalTurns(), kept }
    const { requestTimeoutMs, maxEventBytes, maxWatchDurationMs } = this.#options
    const bounds = {
      requestTimeoutMs,
      eventBytesMax: maxEventBytes,
      watchMsMax: maxWatchDurationMs,
      accessChecks: this.#accessChecks,
    }
    for (const group of this.#groups) {
      this.#services.install(eventsService({ ...shared, ...bounds, group }))
    }
  }

  #installServices(): void {
    showProcess(this.#metrics)
    showBuild(this.#metrics)
    this.#services.install(versionService(buildInfo()))
    this.#services.install(metricsService(METRICS_PATH, this.#metrics))
    this.#services.install(metricsService(SLIS_PATH, this.#healthMetrics.registry))
    this.#services.install(
      discoveryService({
        group: this.#options.eventsGroup,
        otherGroups: selfReviewGroups,
        otherPaths: [...OPEN_PATHS, ...openApiPaths],
        regarded: () => this.#engine.regardedKinds(),
        decide: async (user, attributes) => this.#gate?.decide(user, attributes),
      }),
    )
    const { gitVersion: release } = buildInfo()
    const groups = [...this.#groups.map(eventsOpenApi), ...reviewsOpenApi]
    this.#services.install(openApiService({ groups, release }))
  }

  #handler(gate: Gate, { limits, observer }: Admission): Handler {
    return serve({
      services: this.#services,
      gate,
      limits,
      observer,
      audit: this.#audit?.auditor,
      refusals: new RefusalLog({
        log: this.#log.child({ logger: 'gate' }),
        clock: this.#clock,
        onRefused: refusalCounter(this.#metrics),
      }),
      log: this.#log.child({ logger: 'http' }),
      isTurningAway: () => this.#lifecycle.notAcceptingNewRequest.isOpen,
    })
  }

  #listener(handler: Handler, host: string, port: number, tls?: TlsSettings): Listener {
    const log = this.#log.child({ logger: 'http' })
    const listener = new Listener({
      host,
      port,
      tls,
      clock: this.#clock,
      limits: {
        ...DEFAULT_LIMITS,
        requestTimeoutMs: this.#options.requestTimeoutMs,
        streamsMax: this.#options.http2MaxStreamsPerConnection,
        stalledTimeoutMs: this.#options.stalledResponseTimeoutMs,
      },
      ...this.#clientMemory,
      handler,
      lateResponse: (request) => lateResponse(request, this.#audit?.auditor),
      onHandshakeError: tls === undefined ? undefined : handshakeErrorCounter(this.#metrics),
      // The port without TLS is for processes on this host, which need no proxy.
      proxies: tls === undefined ? undefined : this.#proxies(log),
      onBug: (err, { method, path }) => {
        // A long list whose state went before its end was read: its reader lists anew.
        if (err instanceof StatusError) log.warn('List cut off', { err, method, path })
        else log.error('Answer broken off', { err, method, path })
      },
    })
    this.#listeners.push(listener)
    return listener
  }

  #proxies(log: Log): ProxySettings | undefined {
    const { proxyProtocolFrom: from } = this.#options
    if (from.length === 0) return undefined
    return { from, onRefused: proxyRefusalCounter(this.#metrics, log, this.#clock) }
  }
}
