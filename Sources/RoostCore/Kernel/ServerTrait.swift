#if !Server
#error(
    "The server is built with the package trait Server: swift build --traits Server. Without it there is the SDK: swift build --product Roost."
)
#endif
