import ArgumentParser
import Configuration

@main struct Main: ParsableCommand {}
