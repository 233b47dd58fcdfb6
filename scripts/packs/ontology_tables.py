"""What of schema.org goes into the `ontology` pack, and which entities of other packs are instances of its classes."""

# The tops are listed as well; Thing, Intangible, Enumeration and StructuredValue say nothing of what they hold.
_CLASSES = """
CreativeWork Article NewsArticle ScholarlyArticle SocialMediaPosting BlogPosting Atlas Blog Book Audiobook Chapter
Clip Comment Answer Question LearningResource Course Quiz Dataset Drawing Episode PodcastEpisode RadioEpisode
TVEpisode Game VideoGame Legislation Manuscript Map MediaObject ImageObject Menu Message EmailMessage Movie
MusicComposition MusicPlaylist MusicAlbum MusicRecording CreativeWorkSeries Periodical Newspaper ComicSeries
BookSeries MovieSeries PodcastSeries RadioSeries TVSeries Painting Photograph Play Poster Quotation Recipe Review
CriticReview Sculpture SheetMusic ShortStory SoftwareApplication Thesis VisualArtwork CoverArt WebPage WebSite Event
ChildrensEvent ComedyEvent DanceEvent ExhibitionEvent Festival FoodEvent LiteraryEvent MusicEvent ScreeningEvent
SocialEvent SportsEvent TheaterEvent VisualArtsEvent Organization Airline Corporation EducationalOrganization
CollegeOrUniversity ElementarySchool HighSchool MiddleSchool Preschool School GovernmentOrganization LocalBusiness
Library RadioStation TelevisionStation ShoppingCenter GasStation EmergencyService FireStation Hospital PoliceStation
EntertainmentBusiness AmusementPark ArtGallery Casino MovieTheater NightClub FinancialService BankOrCreditUnion
InsuranceAgency FoodEstablishment Bakery BarOrPub Brewery CafeOrCoffeeShop Distillery FastFoodRestaurant
IceCreamShop Restaurant Winery LodgingBusiness BedAndBreakfast Campground Hostel Hotel Motel Resort SkiResort
Pharmacy SportsActivityLocation BowlingAlley GolfCourse StadiumOrArena Store BookStore ClothingStore DepartmentStore
FurnitureStore GroceryStore ShoeStore ToyStore MedicalOrganization VeterinaryCare NGO PerformingGroup DanceGroup
MusicGroup TheaterGroup SportsOrganization SportsTeam Person Place Accommodation Apartment House Room
AdministrativeArea City Country State CivicStructure Airport Aquarium Beach Bridge BusStation Cemetery Museum Park
Playground Zoo TrainStation SubwayStation GovernmentBuilding CityHall Courthouse Embassy PlaceOfWorship
BuddhistTemple Church CatholicChurch HinduTemple Mosque Synagogue Landform Continent Mountain Volcano BodyOfWater
Canal LakeBodyOfWater OceanBodyOfWater Reservoir RiverBodyOfWater SeaBodyOfWater Waterfall TouristAttraction Product
Vehicle BusOrCoach Car Motorcycle MedicalEntity AnatomicalStructure Bone Joint Muscle Nerve Vessel Artery Vein
AnatomicalSystem MedicalCondition InfectiousDisease MedicalSignOrSymptom MedicalRiskFactor MedicalTest BloodTest
MedicalProcedure SurgicalProcedure MedicalTherapy Substance Drug DietarySupplement DrugClass Language Occupation
Specialty MedicalSpecialty Trip Flight TrainTrip BusTrip BroadcastChannel TelevisionChannel Action TradeAction
BuyAction SellAction RentAction TransferAction BorrowAction LendAction AchieveAction WinAction LoseAction PlayAction
ExerciseAction
"""
CLASSES = tuple(_CLASSES.split())

# Properties that read as nouns; their superproperties come with them.
_PROPERTIES = """
acceptedAnswer affiliation artMedium awayTeam bccRecipient borrower buyer candidate cookTime episodeNumber
firstAppearance flightNumber fromLocation funder homeLocation homeTeam isbn itemLocation landlord
legislationJurisdiction legislationPassedBy lender logo loser mainEntity opponent partOfEpisode partOfSeason
partOfSeries photo readBy recipeIngredient recipeInstructions resultComment resultReview seasonNumber seller
serialNumber spatialCoverage taxID toLocation tool toRecipient vehicleIdentificationNumber volumeNumber winner
workLocation workPerformed workPresented arrivalAirport arrivalStation athlete birthPlace character children coach
colleague containedInPlace deathPlace departureAirport departureStation drugClass editor employee exampleOfWork
firstPerformance founder foundingLocation illustrator inAlbum inPlaylist interactingDrug locationCreated lyricist
lyrics nationality parent parentOrganization partOfSystem recordingOf riskFactor sibling signOrSymptom spouse
subEvent subOrganization superEvent translationOfWork typicalTest
"""
PROPERTIES = tuple(_PROPERTIES.split())

# Where the identifier, read as words, is no good English or the name of something else.
LABELS = {
    "BuddhistTemple": "Buddhist temple",
    "CatholicChurch": "Catholic church",
    "HinduTemple": "Hindu temple",
    "ChildrensEvent": "children's event",
    "LakeBodyOfWater": "lake",
    "OceanBodyOfWater": "ocean",
    "RiverBodyOfWater": "river",
    "SeaBodyOfWater": "sea",
    "Vessel": "vessel of the body",
    "NGO": "non-governmental organization",
    "VeterinaryCare": "veterinary practice",
    "isbn": "ISBN",
    "taxID": "tax ID",
    "bccRecipient": "blind copy recipient",
    "toRecipient": "direct recipient",
    "birthPlace": "place of birth",
    "deathPlace": "place of death",
    "children": "child",
    "itemLocation": "location of the item",
    "drugClass": "class of the drug",
    "readBy": "reader",
    "legislationPassedBy": "legislator",
    "inAlbum": "album of the recording",
    "inPlaylist": "playlist of the recording",
    "recordingOf": "recorded composition",
    "exampleOfWork": "exemplified work",
    "translationOfWork": "translated work",
    "containedInPlace": "containing place",
    "isPartOf": "whole",
    "partOfEpisode": "whole episode",
    "partOfSeason": "whole season",
    "partOfSeries": "whole series",
    "partOfSystem": "whole system",
    "memberOf": "membership",
    "about": "subject matter",
}

PLAYS = {"Faust", "Hamlet"}
GROUPS = {
    *("ABBA", "AC/DC", "Fleetwood Mac", "Nirvana", "Pink Floyd", "Queen", "Radiohead", "the Beach Boys"),
    *("the Beatles", "the Clash", "the Eagles", "the Rolling Stones", "U2"),
}
# Names that mean something else first, or that are no names of one thing.
NOT_INSTANCES = {
    *("24", "Bad", "Lost", "Friends", "Dallas", "Netflix", "Arrival", "Madonna", "Prince", "Queen", "Fox"),
    *("the pamphlet Common Sense", "the treatise On War", "Meditations", "Leviathan", "Utopia"),
    *("painter and decorator", "dentist", "electrician", "florist", "locksmith", "optician", "plumber", "author"),
    *("the first Geneva Convention", "the Universal Declaration of Human Rights", "the Peace of Augsburg"),
    *("the Declaration of the Rights of Man and of the Citizen", "Das Kapital"),
}
