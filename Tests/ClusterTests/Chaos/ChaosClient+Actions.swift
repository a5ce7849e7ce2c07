#if Cluster
import RoostAPI
import RoostTestSupport

/// The random actions of a client of the kill test.
extension ChaosClient {
    func act(on socket: RawSocket) async {
        while !Task.isCancelled, self.socket === socket {
            // The pace of a person who writes a lot.
            try? await Task.sleep(for: .milliseconds(random.number(30...170)))
            guard !Task.isCancelled, isLive else { continue }
            if isActing, inFlight.count < Self.inFlightMax { doSomething() }
            sendPending()
        }
    }

    func sendPending() {
        while inFlight.count < Self.inFlightMax, let index = pending.firstIndex(where: { !$0.isInFlight }) {
            pending[index].isInFlight = true
            pending[index].attempts += 1
            let message = pending[index]
            let send = SendMessage(channel: message.name, clientId: message.clientId, text: "\(user) \(message.clientId)")
            post(send, as: .send(message.clientId), in: message.channel)
        }
    }

    private func doSomething() {
        let lot = random.number(1...100)
        if !wanders.isEmpty, lot <= 20 { return turn(random.pick(wanders)) }
        guard let channel = view.channels.keys.sorted().randomElement(using: &random) else { return }
        switch lot {
        case 21...28: post(MarkRead(channel: channel, seq: view.channels[channel]?.position), as: .change, in: channel)
        case 29...30: post(UpdateMe(displayName: "\(user) \(random.number(1...1000))"), as: .change)
        case 31...36:
            guard let message = mine.randomElement(using: &random) else { return }
            let text = "edited \(random.number(1...1000))"
            post(
                EditMessage(channel: message.channelId, message: message.messageId, text: text), as: .change, in: message.channelId)
        case 37...39:
            guard let message = mine.popLast() else { return }
            post(DeleteMessage(channel: message.channelId, message: message.messageId), as: .change, in: message.channelId)
        default:
            // One message, or several at once, by both names of the channel in turn.
            for number in 0..<(lot > 85 ? 4 : 1) {
                lastNumber += 1
                let name = number % 2 == 0 ? channel : ChannelID("community:\(channel)")
                pending.append(Outgoing(clientId: ClientID("\(user)-\(lastNumber)"), channel: channel, name: name))
            }
        }
    }

    /// Joins or leaves, one at a time in a channel.
    private func turn(_ channel: ChannelID) {
        guard turning.insert(channel).inserted else { return }
        if view.channels[channel] == nil {
            post(JoinChannel(channel: channel), as: .turn(channel), in: channel)
        } else {
            post(LeaveChannel(channel: channel), as: .turn(channel), in: channel)
        }
    }
}
#endif
